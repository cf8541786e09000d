// The memory that a process which checks kernels shares with its parent (job.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autotune/check/captured_calls.h"
#include "autotune/check/job.h"
#include "ir/program/program.h"

namespace tilewright::autotune {

class SharedJobs {
 public:
  // Job j is instruction j of the part's main block, called as calls[j]. Errors: kLimit.
  static Result<std::unique_ptr<SharedJobs>> make(const ir::Program& part,
                                                  const std::vector<const CapturedCall*>& calls,
                                                  int workers, bool same_bits);
  SharedJobs(const SharedJobs&) = delete;
  SharedJobs& operator=(const SharedJobs&) = delete;
  ~SharedJobs();

  int descriptor() const { return descriptor_; }  // closed by exec
  std::span<CheckJob> jobs() const;

 private:
  explicit SharedJobs(int64_t bytes);
  int descriptor_ = -1;
  uint8_t* data_ = nullptr;  // null: there is no memory
  const size_t bytes_;
};

}  // namespace tilewright::autotune
