// How a process finds the other ranks of its job: from what its launcher says in environment variables.
#pragma once

#include <memory>
#include <string>

#include "runtime/distributed/comm.h"
#include "runtime/distributed/store.h"

namespace tilewright::distributed {

struct JoinOptions {
  std::string engine;     // empty: that of the launcher
  std::string interface;  // ConnectOptions
  CommOptions comm;       // `record_file` is followed by the rank
};
struct Joined {
  std::unique_ptr<Store> store;
  std::unique_ptr<Comm> comm;  // null: no launcher started this process, which is the only one
};

// The name of the engine that the launcher of this process connects ranks by: mpirun and srun (openmpi, mpich),
// tilewright launch (gloo). Empty: there is no launcher.
std::string engine_of_launcher();

// Connects to the other ranks, and keeps to this rank's share of the machine's CPUs where the launcher left all of
// them to each of its ranks. Errors: an engine that the launcher has not started, or that cannot be opened; ranks
// that do not come.
Result<Joined> join_ranks(const JoinOptions& options);

}  // namespace tilewright::distributed
