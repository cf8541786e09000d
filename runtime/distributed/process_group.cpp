#include "runtime/distributed/process_group.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/distributed/tcp_socket.h"

namespace tilewright::distributed {

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::make(std::chrono::milliseconds grace) {
  sigset_t handled, before;
  sigemptyset(&handled);
  for (const int s : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&handled, s);
  Descriptor signals(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return io_error("no signalfd: " + system_error_text(errno));
  pthread_sigmask(SIG_BLOCK, &handled, &before);
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(std::move(signals), before, grace));
}

ProcessGroup::ProcessGroup(Descriptor signals, const sigset_t& before,
                           std::chrono::milliseconds grace)
    : signals_(std::move(signals)), before_(before), grace_(grace) {}

ProcessGroup::~ProcessGroup() {
  send_to_all(SIGKILL);
  for (const Process& p : running_)
    while (::waitpid(p.id, nullptr, 0) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Status ProcessGroup::start(int rank, const ProcessSpec& spec) {
  TW_ASSIGN(StartedProcess process, start_process(spec, before_));
  const std::string prefix = "[rank " + std::to_string(rank) + "] ";
  running_.push_back({rank, process.id, OutputLines(std::move(process.out), prefix),
                      OutputLines(std::move(process.error), prefix)});
  return {};
}

Result<std::optional<ProcessEnd>> ProcessGroup::wait() {
  for (;;) {
    if (!has_output()) {
      if (!ended_.empty()) {
        const ProcessEnd end = ended_.front();
        ended_.pop_front();
        return std::optional(end);
      }
      if (running_.empty()) return std::optional<ProcessEnd>();
    }
    TW_RETURN_IF_ERROR(poll_once());
  }
}

void ProcessGroup::stop() {
  send_to_all(SIGTERM);
  send_to_all(SIGCONT);  // one that is stopped takes no other signal
  if (!kill_at_) kill_at_ = Clock::now() + grace_;
}

// A process that was not reaped keeps its number, so that none but it and what it started is reached.
void ProcessGroup::send_to_all(int signal) {
  for (const Process& p : running_) ::kill(-p.id, signal);
}

Status ProcessGroup::poll_once() {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
  // poll() passes over negative descriptors.
  for (const OutputQueue* q : {&out_, &error_})
    polled.push_back({q->empty() ? -1 : q->descriptor(), POLLOUT, 0});
  for (const Process& p : running_) {
    polled.push_back({out_.is_full() ? -1 : p.out.descriptor(), POLLIN, 0});
    polled.push_back({error_.is_full() ? -1 : p.error.descriptor(), POLLIN, 0});
  }
  const int pause = kill_at_ ? milliseconds_until(*kill_at_) : -1;
  const int count = ::poll(polled.data(), polled.size(), pause);
  if (count < 0 && errno != EINTR) return io_error("poll: " + system_error_text(errno));
  if (count > 0) {
    if (polled[1].revents != 0) out_.write_some();
    if (polled[2].revents != 0) error_.write_some();
    size_t i = 3;
    for (Process& p : running_) {
      if (polled[i++].revents != 0) p.out.read_some(out_);
      if (polled[i++].revents != 0) p.error.read_some(error_);
    }
    if (polled[0].revents != 0) pass_signals_on();
  }
  if (kill_at_ && Clock::now() >= *kill_at_) {
    send_to_all(SIGKILL);
    for (OutputQueue* q : {&out_, &error_}) q->drop();  // nobody may read any more
    kill_at_ = Clock::now() + grace_;
  }
  collect();
  return {};
}

void ProcessGroup::pass_signals_on() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    send_to_all(signal);
    if (++interrupts_ == 2 && !kill_at_) kill_at_ = Clock::now() + grace_;
  }
}

// First looks without reaping, so that what an ended process left behind in its group can be killed; then nothing
// writes to its pipes any more but what has left the group, and is not waited for.
void ProcessGroup::collect() {
  for (auto p = running_.begin(); p != running_.end();) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(p->id), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      ++p;
      continue;
    }
    ::kill(-p->id, SIGKILL);
    ::waitpid(p->id, nullptr, 0);
    p->out.finish(out_);
    p->error.finish(error_);
    ended_.push_back({p->rank, info.si_code != CLD_EXITED, info.si_status});
    p = running_.erase(p);
  }
}

}  // namespace tilewright::distributed
