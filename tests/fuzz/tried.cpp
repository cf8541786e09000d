#include "tests/fuzz/tried.h"

#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tilewright {
namespace {

char tried[4096] = "nothing yet";

// Writes what is tried to standard error; calls only what a signal handler may call. A crash ends the process by its
// signal, so that a core file and the exit status tell which.
void report(int signal) {
  const bool hangs = signal == SIGALRM || signal == SIGPROF;
  const char* why = hangs ? "\nhangs: " : "\ncrashes: ";
  (void)!write(2, why, std::strlen(why));
  (void)!write(2, tried, std::strlen(tried));
  (void)!write(2, "\n", 1);
  std::signal(signal, SIG_DFL);
  if (hangs) _exit(1);
  raise(signal);
}

}  // namespace

void begin_try(const std::string& what, unsigned seconds) {
  std::snprintf(tried, sizeof tried, "%s", what.c_str());
  // A handler cannot run on a stack that is used up.
  static uint8_t stack[1 << 16];
  const stack_t other{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action{};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF})
    sigaction(s, &action, nullptr);
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(10 * seconds);  // a machine may be busy, but a process that sleeps hangs, too
}

void judge(const Error& e) {
  if (e.kind != ErrorKind::kInternal && !e.message.empty()) return;
  std::fprintf(stderr, "fails: %s\n%s\n", tried, e.to_string().c_str());
  std::abort();
}

}  // namespace tilewright
