// The engines `openmpi` and `mpich`: one source, built once against each. The launcher (mpirun, srun) has connected
// the ranks. MPI makes progress only while it is called, so all waiting polls.
#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <array>
#include <cstring>

#include "runtime/distributed/transport.h"

namespace tilewright::distributed {

namespace {

constexpr int kTagBits = 15;  // the standard promises tags up to 32767
constexpr int kRollCallTag = 32767;
constexpr size_t kLongestState = 256;

Status check(int code, const char* what) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return io_error(std::string("MPI: ") + what + ": " +
                  std::string(text, static_cast<size_t>(length)));
}

// Yields at first; sleeps where that takes long, so that a rank that computes on the same CPU goes on.
class Patience {
 public:
  void pause() {
    if (++pauses_ < 200) {
      sched_yield();
      return;
    }
    const timespec time{0, 20000};
    nanosleep(&time, nullptr);
  }

 private:
  int pauses_ = 0;
};

Result<MPI_Status> wait_for(MPI_Request& request, Deadline deadline, const char* what) {
  MPI_Status status;
  Patience patience;
  for (int done = 0;;) {
    TW_RETURN_IF_ERROR(check(MPI_Test(&request, &done, &status), what));
    if (done) return status;
    if (Clock::now() >= deadline) return io_error(std::string("MPI: timed out in ") + what);
    patience.pause();
  }
}

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(bool receives, int other, size_t bytes)
      : receives_(receives), other_(other), bytes_(bytes) {}
  ~MpiTransfer() override {
    if (request == MPI_REQUEST_NULL || !receives_) return;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  Result<int> wait(Deadline deadline) override {
    TW_ASSIGN(const MPI_Status status, wait_for(request, deadline, receives_ ? "receive" : "send"));
    if (!receives_) return other_;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (static_cast<size_t>(count) != bytes_)
      return invalid("rank " + std::to_string(status.MPI_SOURCE) + " sent " +
                     std::to_string(count) + " bytes, expected " + std::to_string(bytes_));
    return status.MPI_SOURCE;
  }
  MPI_Request request = MPI_REQUEST_NULL;

 private:
  const bool receives_;
  const int other_;
  const size_t bytes_;
};

std::optional<MPI_Datatype> type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    default: return std::nullopt;
  }
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  // All ranks come here together, but after a failure: then the launcher ends them.
  ~MpiTransport() override {
    if (!failed_) MPI_Finalize();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string describe() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string version(text, static_cast<size_t>(length));
    version = version.substr(0, version.find_first_of(",\n"));
    for (char& c : version)
      if (c == '\t') c = ' ';
    return version;
  }
  bool polls() const override { return true; }

  Result<std::unique_ptr<Transfer>> send(int to, uint64_t tag,
                                         std::span<const std::byte> data) override {
    auto transfer = std::make_unique<MpiTransfer>(false, to, data.size());
    TW_RETURN_IF_ERROR(check(MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to,
                                       short_tag(tag), comm_, &transfer->request),
                             "send"));
    return std::unique_ptr<Transfer>(std::move(transfer));
  }
  Result<std::unique_ptr<Transfer>> receive(int from, uint64_t tag,
                                            std::span<std::byte> data) override {
    auto transfer = std::make_unique<MpiTransfer>(true, from, data.size());
    TW_RETURN_IF_ERROR(check(MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE,
                                       from == kAnyRank ? MPI_ANY_SOURCE : from, short_tag(tag),
                                       comm_, &transfer->request),
                             "receive"));
    return std::unique_ptr<Transfer>(std::move(transfer));
  }

  std::optional<Status> all_reduce(ReduceOp op, DType dtype, void* data, int64_t count, uint64_t,
                                   Deadline deadline) override {
    const auto type = type_of(dtype);
    if (!type || count > INT32_MAX) return std::nullopt;
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    MPI_Request request;
    if (Status s = check(MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), *type,
                                        ops[static_cast<int>(op)], comm_, &request),
                         "all-reduce");
        !s.ok())
      return s;
    auto done = wait_for(request, deadline, "all-reduce");
    return done.ok() ? Status() : Status(std::move(done.error()));
  }

  // Messages go on past a failed call: each rank sends its state to all.
  std::vector<std::optional<std::string>> roll_call(const std::string& state,
                                                    Deadline deadline) override {
    const auto n = static_cast<size_t>(size_);
    std::vector<std::optional<std::string>> states(n);
    states[static_cast<size_t>(rank_)] = state;
    // They outlive the call: what a silent rank was sent stays under way.
    static std::array<char, kLongestState> mine;
    std::strncpy(mine.data(), state.c_str(), kLongestState - 1);
    std::vector<std::array<char, kLongestState>> theirs(n);
    std::vector<std::unique_ptr<MpiTransfer>> arriving(n);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      MPI_Request sent;
      MPI_Isend(mine.data(), kLongestState, MPI_CHAR, r, kRollCallTag, comm_, &sent);
      auto& transfer = arriving[static_cast<size_t>(r)];
      transfer = std::make_unique<MpiTransfer>(true, r, kLongestState);
      MPI_Irecv(theirs[static_cast<size_t>(r)].data(), kLongestState, MPI_CHAR, r, kRollCallTag,
                comm_, &transfer->request);
    }
    for (size_t r = 0; r < n; ++r) {
      if (!arriving[r] || !arriving[r]->wait(deadline).ok()) continue;
      theirs[r].back() = '\0';
      states[r] = theirs[r].data();
    }
    return states;
  }
  void abort() override { failed_ = true; }

 private:
  static int short_tag(uint64_t tag) { return static_cast<int>(tag % ((1u << kTagBits) - 1)); }
  const MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  bool failed_ = false;
};

class MpiEngine final : public Engine {
 public:
  Result<std::unique_ptr<Transport>> connect(const ConnectOptions&) const override {
    int there = 0;
    MPI_Initialized(&there);
    if (there) return invalid("a process connects by MPI once");
    int given = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS)
      return io_error("MPI cannot be initialised");
    if (given < MPI_THREAD_SERIALIZED)
      return unsupported("this MPI was built without threads, which communication needs");
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return std::unique_ptr<Transport>(std::make_unique<MpiTransport>(comm));
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Engine* tilewright_engine_1() {
  static const MpiEngine engine;
  return &engine;
}

}  // namespace tilewright::distributed
