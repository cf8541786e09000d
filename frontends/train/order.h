// Which samples a step is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "frontends/train/job.h"
#include "runtime/core/result.h"

namespace tilewright::train {

// The samples of each step, or of each part of one (Job::accumulate), which are counted through as steps
// are: from a file, or shuffled anew by the seed for each epoch. It depends on seed, step and batch alone,
// whatever process asks.
class Order {
 public:
  static Result<Order> create(const Job& job, int64_t samples);
  // Does it say what the step's samples are? A file has the job's steps; a shuffle goes on for ever.
  bool has(int64_t step) const {
    return given_.empty() || step < static_cast<int64_t>(given_.size()) / batch_;
  }
  // Job::part() numbers of samples.
  std::vector<int64_t> batch(int64_t step);

 private:
  int64_t samples_ = 0, batch_ = 0;
  uint64_t seed_ = 0;
  std::vector<int64_t> given_;
  int64_t epoch_ = -1;
  std::vector<int64_t> shuffled_;  // of that epoch
};

}  // namespace tilewright::train
