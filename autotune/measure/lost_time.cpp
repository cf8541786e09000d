#include "autotune/measure/lost_time.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace tilewright::autotune {

namespace {

// "run wait slices": nanoseconds of a thread.
int64_t waited(const char* schedstat) {
  std::FILE* file = std::fopen(schedstat, "r");
  if (!file) return 0;
  long long ran = 0, waited = 0;
  const int read = std::fscanf(file, "%lld %lld", &ran, &waited);
  std::fclose(file);
  return read == 2 ? waited : 0;
}

// "cpu user nice system idle iowait irq softirq steal": ticks of all CPUs.
int64_t stolen() {
  std::FILE* file = std::fopen("/proc/stat", "r");
  if (!file) return 0;
  long long steal = 0;
  const int read = std::fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &steal);
  std::fclose(file);
  static const int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  return read == 1 ? steal * tick : 0;
}

}  // namespace

int64_t lost_nanoseconds() {
  int64_t lost = stolen();
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/task", error), end; !error && it != end;
       it.increment(error))
    lost += waited((it->path() / "schedstat").c_str());
  return lost;
}

}  // namespace tilewright::autotune
