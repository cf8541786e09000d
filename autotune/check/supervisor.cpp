#include "autotune/check/supervisor.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

// One process after the other, until no job is left.
class Supervisor {
 public:
  Supervisor(const SharedJobs& shared, const Supervision& how)
      : jobs_(shared.jobs()),
        count_(jobs_.size()),
        descriptor_(shared.descriptor()),
        how_(how),
        ended_(count_) {}

  // What ended the process in a job; empty for others.
  Result<std::vector<std::string>> run() {
    while (unfinished() < count_) {
      TW_ASSIGN(const pid_t child, start());
      const int status = wait(child);
      const size_t job = running();
      if (job == count_) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        return io_error("the process that checks kernels failed", how_.worker);
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
  // The process that writes these may be gone at any moment: states are read as it left them.
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
    const std::string fd = "3", bytes = std::to_string(how_.most_bytes);
    char* const arguments[] = {const_cast<char*>(how_.worker.c_str()),
                               const_cast<char*>(fd.c_str()), const_cast<char*>(how_.model.c_str()),
                               const_cast<char*>(bytes.c_str()), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, descriptor_, 3);
    pid_t child = -1;
    const int error =
        ::posix_spawn(&child, how_.worker.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? Result<pid_t>(
                       io_error(std::string("cannot be started: ") + strerror(error), how_.worker))
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
      if (static_cast<double>(now_nanoseconds() - since) * 1e-9 < how_.seconds) continue;
      if (job < count_) ended_[job] = "took longer than " + std::to_string(how_.seconds) + " s";
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    return status;
  }

  const std::span<CheckJob> jobs_;
  const size_t count_;
  const int descriptor_;
  const Supervision& how_;
  std::vector<std::string> ended_;
};

}  // namespace

Result<std::vector<std::string>> supervise(const SharedJobs& shared, const Supervision& how) {
  return Supervisor(shared, how).run();
}

}  // namespace tilewright::autotune
