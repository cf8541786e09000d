// Runs processes that work off shared jobs, one after the other: what ends one of them is the fault of
// the job that was under way, and the next one goes on behind it. A job that ended a process in which
// others ran before it has another chance in one of its own: they may have left what it died of.
#pragma once

#include <string>
#include <vector>

#include "autotune/check/shared_jobs.h"

namespace tilewright::autotune {

struct Supervision {
  std::string worker,
      model;               // paths: of tilewright-check, and of the shared object with the kernels
  int64_t most_bytes = 0;  // that a kernel may have, beside some times its operands
};

// By job, how it ended its process: "ended by signal 11 (Segmentation fault)", "took longer than 5 s";
// empty: it did not. Errors: kIo where a process cannot be started, or fails in no job.
Result<std::vector<std::string>> supervise(const SharedJobs& shared, const Supervision& how);

}  // namespace tilewright::autotune
