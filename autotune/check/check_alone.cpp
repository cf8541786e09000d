#include "autotune/check/check_alone.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "autotune/check/job.h"
#include "codegen/backend.h"
#include "ir/loops/layout.h"
#include "passes/plan_program.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWorker = "tilewright-check";

// Beside the backend's library, where that was found.
Result<std::string> find_worker() {
  TW_ASSIGN(const codegen::Backend* backend, codegen::open_backend());
  Dl_info about{};
  if (!dladdr(*reinterpret_cast<void* const*>(backend), &about) || !about.dli_fname)
    return io_error(std::string("cannot find ") + kWorker);
  const std::string path = fs::path(about.dli_fname).parent_path() / kWorker;
  return ::access(path.c_str(), X_OK) == 0 ? Result<std::string>(path)
                                           : io_error("cannot be run", path);
}

// The calls that are checked, alone: what else the program has does not matter.
ir::Program reduced(const ir::Program& program, const std::vector<const CapturedCall*>& calls) {
  ir::Program part;
  part.name = program.name;
  part.numerics = program.numerics;
  part.symbols = program.symbols;
  part.buffers = program.buffers;
  for (ir::ProgramBuffer& b : part.buffers) {
    b.kind = ir::StorageKind::kTemporary;
    b.constant = nullptr;
    b.alias_of = -1;
    b.dynamic = false;
  }
  part.blocks.emplace_back();
  for (const CapturedCall* c : calls) {
    auto call = std::get<ir::CallInstruction>(program.blocks[c->block][c->instruction]);
    for (size_t p = 0; p < call.buffers.size(); ++p) {
      if (!c->operands[p].constant) continue;
      const auto b = static_cast<size_t>(call.buffers[p]);
      part.buffers[b] = program.buffers[b];
    }
    part.kernels.push_back(program.kernels[static_cast<size_t>(call.kernel)]);
    part.schedules.emplace_back();
    call.kernel = static_cast<int32_t>(part.kernels.size()) - 1;
    call.profile = -1;
    part.blocks[0].push_back(std::move(call));
  }
  return passes::set_lifetimes(std::move(part));
}

// Memory that a child inherits by its descriptor.
class Shared {
 public:
  explicit Shared(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    fd = ::memfd_create("tilewright", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, bytes) != 0) return;
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) data = static_cast<uint8_t*>(at);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    if (data) ::munmap(data, bytes_);
    if (fd >= 0) ::close(fd);
  }
  int fd = -1;
  uint8_t* data = nullptr;

 private:
  const size_t bytes_;
};

// Jobs, operands and their bytes as they lie in shared memory (job.h).
struct Layout {
  CheckHeader header;
  std::vector<CheckJob> jobs;
  std::vector<CheckOperand> operands;
  std::vector<int64_t> scalars;
  std::vector<std::pair<int64_t, const std::vector<uint8_t>*>> contents;

  Layout(const ir::Program& part, const std::vector<const CapturedCall*>& calls) {
    for (size_t j = 0; j < calls.size(); ++j) {
      const auto& call = std::get<ir::CallInstruction>(part.blocks[0][j]);
      jobs.push_back({.call = static_cast<int32_t>(j),
                      .first_operand = static_cast<int32_t>(operands.size()),
                      .operands = static_cast<int32_t>(calls[j]->operands.size()),
                      .first_scalar = static_cast<int32_t>(scalars.size()),
                      .scalars = static_cast<int32_t>(calls[j]->scalars.size())});
      scalars.insert(scalars.end(), calls[j]->scalars.begin(), calls[j]->scalars.end());
      for (size_t p = 0; p < calls[j]->operands.size(); ++p)
        add(calls[j]->operands[p], part, call.buffers[p]);
    }
    header.jobs = static_cast<int32_t>(jobs.size());
    header.operands = static_cast<int32_t>(operands.size());
    header.scalars = static_cast<int32_t>(scalars.size());
    header.jobs_at = align_up(sizeof header);
    header.operands_at = header.jobs_at + align_up(vector_bytes(jobs));
    header.scalars_at = header.operands_at + align_up(vector_bytes(operands));
    const int64_t data_at = header.scalars_at + align_up(vector_bytes(scalars));
    for (CheckOperand& o : operands) {
      if (o.before >= 0) o.before += data_at;
      if (o.after >= 0) o.after += data_at;
    }
    for (auto& [at, bytes] : contents) at += data_at;
    header.bytes = data_at + data_bytes_;
  }
  void write(uint8_t* to) const {
    std::memcpy(to, &header, sizeof header);
    put(to + header.jobs_at, jobs);
    put(to + header.operands_at, operands);
    put(to + header.scalars_at, scalars);
    for (const auto& [at, bytes] : contents) put(to + at, *bytes);
  }

 private:
  template <typename T>
  static int64_t vector_bytes(const std::vector<T>& v) {
    return static_cast<int64_t>(v.size() * sizeof(T));
  }
  template <typename T>
  static void put(uint8_t* to, const std::vector<T>& v) {
    if (!v.empty()) std::memcpy(to, v.data(), v.size() * sizeof(T));
  }
  int64_t place(const std::vector<uint8_t>& bytes) {
    const int64_t at = data_bytes_;
    contents.emplace_back(at, &bytes);
    data_bytes_ += align_up(vector_bytes(bytes));
    return at;
  }
  void add(const CapturedOperand& o, const ir::Program& part, int32_t buffer) {
    CheckOperand operand{.dtype = static_cast<int32_t>(o.dtype)};
    if (o.constant) {
      const ir::ProgramBuffer& b = part.buffers[static_cast<size_t>(buffer)];
      const ir::BufferNode shape{"", b.constant->dtype, {}, b.layout, ir::Scope::kParam};
      operand.constant = buffer;
      operand.bytes = ir::storage_elements(shape, b.constant->shape) * byte_size(b.constant->dtype);
    } else {
      operand.bytes = static_cast<int64_t>(o.before.size());
      operand.before = place(o.before);
      if (o.written) operand.after = place(o.after);
    }
    operands.push_back(operand);
  }
  int64_t data_bytes_ = 0;
};

std::string verdict(const CheckJob& job, const ir::Kernel& kernel) {
  if (job.state == CheckState::kNoMemory) return "wants more memory than it may have";
  const auto text = [](double x) { return std::to_string(x); };
  return "wrong: " + text(job.found) + " instead of " + text(job.expected) + " at element " +
         std::to_string(job.element) + " of " +
         kernel.params[static_cast<size_t>(job.operand)]->name;
}

// One process after the other, until no job is left.
class Supervisor {
 public:
  Supervisor(Shared& shared, const Layout& layout, const CheckOptions& options, std::string worker,
             std::string model)
      : jobs_(reinterpret_cast<CheckJob*>(shared.data + layout.header.jobs_at)),
        count_(layout.jobs.size()),
        fd_(shared.fd),
        options_(options),
        worker_(std::move(worker)),
        model_(std::move(model)),
        ended_(count_) {}

  // What ended the process in a job; empty for others.
  Result<std::vector<std::string>> run() {
    while (unfinished() < count_) {
      TW_ASSIGN(const pid_t child, start());
      const int status = wait(child);
      const size_t job = running();
      if (job == count_) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        return io_error("the process that checks kernels failed", worker_);
      }
      if (ended_[job].empty()) {
        const int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        ended_[job] = by ? "ended by signal " + std::to_string(by) + " (" + strsignal(by) + ")"
                         : "ended its process";
      }
      jobs_[job].state = CheckState::kNoMemory;  // no longer waiting or running
    }
    return std::move(ended_);
  }

 private:
  size_t first(CheckState state) const {
    size_t j = 0;
    while (j < count_ && __atomic_load_n(reinterpret_cast<int32_t*>(&jobs_[j].state),
                                         __ATOMIC_SEQ_CST) != static_cast<int32_t>(state))
      ++j;
    return j;
  }
  size_t unfinished() const { return first(CheckState::kWaiting); }
  size_t running() const { return first(CheckState::kRunning); }

  Result<pid_t> start() const {
    const std::string fd = "3", bytes = std::to_string(options_.most_bytes);
    char* const arguments[] = {const_cast<char*>(worker_.c_str()), const_cast<char*>(fd.c_str()),
                               const_cast<char*>(model_.c_str()), const_cast<char*>(bytes.c_str()),
                               nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd_, 3);
    pid_t child = -1;
    const int error = ::posix_spawn(&child, worker_.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? Result<pid_t>(
                       io_error(std::string("cannot be started: ") + strerror(error), worker_))
                 : child;
  }

  // Each job has its time from when it is first seen to run.
  int wait(pid_t child) {
    int status = 0;
    size_t job = count_;
    for (int64_t since = now_nanoseconds(); ::waitpid(child, &status, WNOHANG) == 0;) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      if (const size_t now = running(); now != job) {
        job = now;
        since = now_nanoseconds();
      }
      if (static_cast<double>(now_nanoseconds() - since) * 1e-9 < options_.seconds) continue;
      if (job < count_) ended_[job] = "took longer than " + std::to_string(options_.seconds) + " s";
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    return status;
  }

  CheckJob* const jobs_;
  const size_t count_;
  const int fd_;
  const CheckOptions& options_;
  const std::string worker_, model_;
  std::vector<std::string> ended_;
};

struct Folder {
  std::string path = (fs::temp_directory_path() / "tilewright-XXXXXX").string();
  Folder() {
    if (!::mkdtemp(path.data())) path.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

}  // namespace

Result<std::map<std::string, std::string>> check_alone(
    const ir::Program& program, const std::set<std::string>& kernels,
    const std::map<std::string, CapturedCall>& captured, const codegen::AssembleOptions& assemble,
    const CheckOptions& options) {
  std::vector<const CapturedCall*> calls;
  for (const auto& [name, call] : captured)
    if (kernels.count(name)) calls.push_back(&call);
  std::map<std::string, std::string> refused;
  if (calls.empty()) return refused;
  std::string worker = options.worker;
  if (worker.empty()) { TW_ASSIGN(worker, find_worker()); }
  const Folder folder;
  if (folder.path.empty()) return io_error("cannot make a temporary folder");
  const std::string model = folder.path + "/kernels.so";
  const ir::Program part = reduced(program, calls);
  TW_RETURN_IF_ERROR(codegen::assemble_shared_object({part}, assemble, model));
  Layout layout(part, calls);
  layout.header.workers = std::max(1, assemble.machine.threads);
  layout.header.same_bits = options.same_bits;
  Shared shared(layout.header.bytes);
  if (!shared.data) return limit_error("no memory for the operands of kernels that are checked");
  layout.write(shared.data);
  TW_ASSIGN(const std::vector<std::string> ended,
            Supervisor(shared, layout, options, worker, model).run());
  const auto* jobs = reinterpret_cast<const CheckJob*>(shared.data + layout.header.jobs_at);
  for (size_t j = 0; j < calls.size(); ++j) {
    const ir::Kernel& k = part.kernels[j];
    if (!ended[j].empty())
      refused[k.name] = ended[j];
    else if (jobs[j].state != CheckState::kEqual)
      refused[k.name] = verdict(jobs[j], k);
  }
  return refused;
}

}  // namespace tilewright::autotune
