// The processes of one machine that belong to a job: started, watched and ended together.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"
#include "runtime/distributed/deadline.h"
#include "runtime/distributed/output_lines.h"
#include "runtime/distributed/start_process.h"

namespace tilewright::distributed {

struct ProcessEnd {
  int rank = 0;
  bool by_signal = false;
  int code = 0;  // the exit status, or the signal
  bool failed() const { return by_signal || code != 0; }
};

// Each process leads a process group of its own, so that a Ctrl-C reaches it once: through this, which passes SIGINT
// and SIGTERM on; what it started and left behind is killed when it ends. It reads nothing (/dev/null), and its output
// goes to that of this process, line by line. The processes are killed when this process, or the thread that started
// them, ends in any way.
//
// While it lives, SIGINT, SIGTERM and SIGCHLD are blocked in the thread that made it, and must be in all others. One at
// a time.
class ProcessGroup {
 public:
  // grace: from a request to end until the processes are killed. Errors: kIo.
  static Result<std::unique_ptr<ProcessGroup>> make(std::chrono::milliseconds grace);
  ~ProcessGroup();  // kills what runs
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Starts a process, whose lines begin with "[rank R] ". Errors: kIo, also for a program that cannot be executed.
  Status start(int rank, const ProcessSpec& spec);
  // Passes output and signals on until a process has ended, all of whose output was written by then; nothing: none is
  // left.
  Result<std::optional<ProcessEnd>> wait();
  // Asks all to end (SIGTERM), and kills them after the grace time, within wait(); output that waits then is dropped.
  void stop();
  // Signals that were passed on: SIGINT and SIGTERM. A second one starts the grace time.
  int interrupts() const { return interrupts_; }

 private:
  struct Process {
    int rank = 0;
    pid_t id = 0;
    OutputLines out, error;
  };
  ProcessGroup(Descriptor signals, const sigset_t& before, std::chrono::milliseconds grace);

  Status poll_once();
  void pass_signals_on();
  void collect();
  void send_to_all(int signal);
  bool has_output() const { return !out_.empty() || !error_.empty(); }

  const Descriptor signals_;  // a signalfd
  const sigset_t before_;     // of the thread
  const std::chrono::milliseconds grace_;
  std::list<Process> running_;
  std::list<ProcessEnd> ended_;  // not returned yet
  OutputQueue out_{STDOUT_FILENO}, error_{STDERR_FILENO};
  std::optional<Deadline> kill_at_;
  int interrupts_ = 0;
};

}  // namespace tilewright::distributed
