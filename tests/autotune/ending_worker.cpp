// Stands in for tilewright-check where its ends are tested: works off the jobs it is given as their
// `element` says, and calls no kernel.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/autotune/ending_worker.h"

int main(int argc, char** argv) {
  using namespace tilewright::autotune;
  if (argc != 5) return 2;
  const int descriptor = std::atoi(argv[1]);
  CheckHeader header;
  if (pread(descriptor, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return 2;
  auto* data = static_cast<char*>(mmap(nullptr, static_cast<size_t>(header.bytes),
                                       PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  auto* jobs = reinterpret_cast<CheckJob*>(data + header.jobs_at);
  bool first = true;
  for (CheckJob* job = jobs; job != jobs + header.jobs; ++job) {
    if (job->state != CheckState::kWaiting) continue;
    const auto what = static_cast<Ending>(job->element);
    if (what == Ending::kBetweenJobs) return 3;
    job->state = CheckState::kRunning;
    if (what == Ending::kFault || (what == Ending::kFaultBehindAnother && !first)) raise(SIGKILL);
    if (what == Ending::kExit) return 0;
    while (what == Ending::kHang) pause();
    job->state = CheckState::kEqual;
    first = false;
  }
  return 0;
}
