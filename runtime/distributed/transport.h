// Messages between the ranks of a job. An engine (MPI, Gloo, threads of one process) is a Transport; collectives are
// written once over it (collectives.h), and a transport may bring its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/result.h"
#include "runtime/distributed/store.h"

namespace tilewright::distributed {

enum class ReduceOp : uint8_t { kSum, kMin, kMax };

inline constexpr int kAnyRank = -1;

// A message under way. What is received has its memory until wait() has returned or the object is gone, which gives up
// the message; what is sent must stay until wait() has succeeded or the transport was aborted.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Blocks until the message is sent or received, and returns the peer's rank. Errors: kIo if the deadline expires or
  // the connection to the peer breaks; kInvalid if the message does not have the size of the buffer.
  virtual Result<int> wait(Deadline deadline) = 0;
};

// Used by one thread at a time. Messages of one sender, receiver and tag arrive in the order in which they were sent,
// but a transport may tell tags apart by their low 15 bits alone. After an error the transport is good for
// roll_call() and abort() only.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The engine, its version and the network interface, for the table at the start of a run.
  virtual std::string describe() const = 0;
  // Whether waiting takes a CPU: the engine makes progress only while it is called.
  virtual bool polls() const = 0;

  virtual Result<std::unique_ptr<Transfer>> send(int to, uint64_t tag,
                                                 std::span<const std::byte> data) = 0;
  // from: a rank, or kAnyRank.
  virtual Result<std::unique_ptr<Transfer>> receive(int from, uint64_t tag,
                                                    std::span<std::byte> data) = 0;

  // The engine's own sum, minimum or maximum over all ranks, in place; nothing: it has none for these elements.
  virtual std::optional<Status> all_reduce(ReduceOp, DType, void* /*data*/, int64_t /*count*/,
                                           uint64_t /*tag*/, Deadline) {
    return std::nullopt;
  }

  // After a failure: tells the others this rank's state, and returns what each rank told by the deadline; nothing
  // from ranks that were silent.
  virtual std::vector<std::optional<std::string>> roll_call(const std::string& state,
                                                            Deadline deadline) = 0;
  // Lets go of the memory of all transfers; ends connections where the engine has any of its own.
  virtual void abort() = 0;
};

// Where and how a transport connects. An engine that a launcher of its own started (MPI) knows rank and size itself.
struct ConnectOptions {
  int rank = 0, size = 1;
  Store* store = nullptr;  // where ranks find one another, under keys that begin with `prefix`
  std::string prefix;
  std::string address;  // of this host, where other ranks reach it; empty: 127.0.0.1
  Deadline deadline;
};

// One engine. Its library is opened when a job asks for it, so that neither the runtime nor the command needs it.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual Result<std::unique_ptr<Transport>> connect(const ConnectOptions& options) const = 0;
};

// What the library of an engine exports: extern "C" const Engine* tilewright_engine();
using EngineFunction = const Engine*();
inline constexpr const char* kEngineSymbol = "tilewright_engine_1";

// "gloo", "openmpi" or "mpich". Errors: kInvalid, no engine has the name; kIo, its library cannot be opened, and why.
Result<const Engine*> open_engine(const std::string& name);
// Names of engines that libraries hold.
std::vector<std::string> engine_names();

}  // namespace tilewright::distributed
