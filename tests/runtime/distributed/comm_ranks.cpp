// One rank of the suite, for engines whose launcher starts processes: comm_ranks ENGINE. Rank 0 prints how many calls
// were right; any rank's error ends in status 1.
#include <cstdio>
#include <cstdlib>

#include "tests/runtime/distributed/comm_suite.h"

using namespace tilewright;
using namespace tilewright::distributed;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto engine = open_engine(argv[1]);
  if (!engine.ok()) {
    std::printf("skipped: %s\n", engine.error().to_string().c_str());
    return 77;
  }
  auto transport = (*engine)->connect({.deadline = Clock::now() + std::chrono::seconds(20)});
  if (!transport.ok()) {
    std::fprintf(stderr, "%s\n", transport.error().to_string().c_str());
    return 1;
  }
  const int calls = argc > 2 ? std::atoi(argv[2]) : 300;
  Comm comm(std::move(*transport), {.deadline = std::chrono::seconds(30)});
  const std::string wrong = run_comm_suite(comm, 31, calls, 400000);
  if (!wrong.empty()) {
    std::fprintf(stderr, "rank %d: %s\n", comm.rank(), wrong.c_str());
    return 1;
  }
  if (comm.rank() == 0)
    std::printf("%d calls on %d ranks of %s\n", calls, comm.size(), comm.describe().c_str());
  return 0;
}
