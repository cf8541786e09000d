// What a job of ending_worker does: CheckJob::element.
#pragma once

#include "autotune/check/job.h"

namespace tilewright::autotune {

enum class Ending : int64_t {
  kNone,
  kFault,
  kFaultBehindAnother,  // where another job ran in the process before
  kExit,
  kHang,
  kBetweenJobs,  // the process ends before the job has begun
};

}  // namespace tilewright::autotune
