// The jobs of a process that checks kernels, in memory that it shares with its parent (job.h).
#pragma once

#include <span>
#include <vector>

#include "autotune/check/captured_calls.h"
#include "autotune/check/job.h"
#include "ir/program/program.h"

namespace tilewright::autotune {

class SharedJobs {
 public:
  // Job j is instruction j of the part's main block, called as calls[j], which are among `captured`.
  // `seconds`: what any of them may take, beside some times what it took when it was captured.
  // Errors: kLimit.
  static Result<SharedJobs> make(const ir::Program& part,
                                 const std::vector<const CapturedCall*>& calls,
                                 const CapturedCalls& captured, int workers, bool same_bits,
                                 double seconds);

  std::span<CheckJob> jobs() const;
  // Closed by exec: of the jobs, and of what their operands hold.
  int descriptor() const { return memory_.descriptor(); }
  int contents() const { return contents_; }

 private:
  SharedJobs(SharedMemory memory, int contents) : memory_(std::move(memory)), contents_(contents) {}
  SharedMemory memory_;
  int contents_;
};

}  // namespace tilewright::autotune
