#include "autotune/check/worker_limits.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <initializer_list>

namespace tilewright::autotune {

void limit_time(double seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double by_now = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  const rlimit limit{static_cast<rlim_t>(by_now + seconds + 3), RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
}

// Sanitizers reserve terabytes of addresses, and take more of them as they like: no limit then.
void limit_memory([[maybe_unused]] int64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  int64_t pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%" SCNd64, &pages) != 1) pages = 0;
    std::fclose(f);
  }
  const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

void end_plainly() {
  for (const int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) signal(s, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (std::FILE* f = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", f);
    std::fclose(f);
  }
}

}  // namespace tilewright::autotune
