// Runs processes that work off shared jobs, one after the other: what ends one of them is the fault of
// the job that was under way, and the next one goes on behind it.
#pragma once

#include <string>
#include <vector>

#include "autotune/check/shared_jobs.h"

namespace tilewright::autotune {

struct Supervision {
  std::string worker,
      model;               // paths: of tilewright-check, and of the shared object with the kernels
  double seconds = 5;      // of a job
  int64_t most_bytes = 0;  // of addresses that a process may have
};

// By job, how it ended its process: "ended by signal 11 (Segmentation fault)", "took longer than 5 s";
// empty: it did not. Errors: kIo where a process cannot be started, or fails in no job.
Result<std::vector<std::string>> supervise(const SharedJobs& shared, const Supervision& how);

}  // namespace tilewright::autotune
