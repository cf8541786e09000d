// The ranks of a run, as a training job sees them: one process, or several that agree on all that counts.
#pragma once

#include <map>
#include <string>

#include "frontends/compiler/compiler.h"
#include "frontends/train/job.h"
#include "runtime/distributed/comm.h"

namespace tilewright::train {

// Cheap to copy. All ranks call the functions below alike; of one process they do nothing.
class Ranks {
 public:
  // null: there is one process. It is the caller's.
  explicit Ranks(distributed::Comm* comm = nullptr) : comm_(comm) {}

  bool any() const { return comm_ != nullptr; }
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int size() const { return comm_ ? comm_->size() : 1; }
  // Writes files and messages for all.
  bool is_first() const { return rank() == 0; }
  distributed::Comm* comm() const { return comm_; }

  // Fails on all ranks if it failed on any: with the error of the first of these, and its rank.
  Status agree(const Status& mine, const std::string& of) const;
  // Fails where ranks differ in what an item is: "rank 1 has seed 2, rank 0 has 1".
  Status compare(const std::map<std::string, std::string>& items) const;
  // The machine and the number of threads that rank 0 compiles for, in the options of all.
  Status share_machine(CompileOptions& options) const;
  // Of values that each rank gives for places of its own, and 0 for others: all of them.
  Status merge(std::span<double> values, const std::string& of) const;

 private:
  distributed::Comm* comm_;
};

// The job as its ranks run it: with a number of parts. Errors: parts of another size each.
Result<Job> for_ranks(Job job, const Ranks& ranks);

}  // namespace tilewright::train
