// The ranks of a run, as a training job sees them: one process, or several that agree on all that counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "frontends/train/job.h"
#include "runtime/distributed/group.h"

namespace tilewright::train {

// Cheap to copy. All ranks call the functions below alike; of one process they do nothing.
class Ranks {
 public:
  // null: there is one process. It is the caller's.
  explicit Ranks(distributed::Group* group = nullptr) : group_(group) {}

  bool any() const { return group_ != nullptr; }
  distributed::Group* group() const { return group_; }
  // Once they are connected: where each process is, and how to talk to the others.
  distributed::Comm* comm() const { return group_ ? group_->comm() : nullptr; }
  int rank() const { return comm() ? comm()->rank() : 0; }
  int size() const { return comm() ? comm()->size() : 1; }
  // Writes files and messages for all.
  bool is_first() const { return rank() == 0; }
  // Was a call of theirs broken off, since ranks are lost, and may others go on?
  bool can_regroup() const {
    return group_ && group_->is_elastic() && comm() && comm()->has_failed();
  }

  // Fails on all ranks if it failed on any: with the error of the first of these, and its rank.
  Status agree(const Status& mine, const std::string& of) const;
  // Fails where processes differ in what an item is: "rank 1 has seed 2, rank 0 has 1". Before they are connected.
  Status compare(const std::map<std::string, std::string>& items) const;
  // The machine and the number of threads that one of them compiles for, in the options of all. Likewise.
  Status share_machine(CompileOptions& options) const;
  // Compares hashes across ranks. The error names the first item that differs and the ranks that disagree with rank 0.
  Status verify(const std::vector<std::string>& items, const std::vector<int64_t>& hashes) const;
  // Of values that each rank gives for places of its own, and 0 for others: all of them.
  Status merge(std::span<double> values, const std::string& of) const;

 private:
  distributed::Group* group_;
};

// The job as its ranks run it: with a number of parts. Errors: parts of another size each.
Result<Job> for_ranks(Job job, const Ranks& ranks);
Result<Job> for_ranks(Job job, int most);

}  // namespace tilewright::train
