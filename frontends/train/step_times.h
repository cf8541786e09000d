// Splits the time of steps into computation, communication and waiting, for each rank.
#pragma once

#include <string>
#include <vector>

#include "frontends/train/ranks.h"

namespace tilewright::train {

// One step of this rank, in nanoseconds of its clock: it begins, its own parts are computed, the sums over all ranks
// are there, the parameters are updated. communicating: how long its calls took, waiting for others included.
struct StepTimes {
  int64_t begun = 0, computed = 0, summed = 0, ended = 0, communicating = 0;

  double step_seconds() const { return static_cast<double>(ended - begun) * 1e-9; }
  double waiting_seconds() const { return static_cast<double>(summed - computed) * 1e-9; }
  double computing_seconds() const { return step_seconds() - waiting_seconds(); }
  double communicating_seconds() const { return static_cast<double>(communicating) * 1e-9; }
};

// Means over the steps that a rank made: seconds a step; how often it was the last to have its parts computed, and how
// long the rank before it had waited then.
struct RankTimes {
  int64_t steps = 0, last = 0;
  double computing = 0, communicating = 0, waiting = 0, behind = 0;
  // Returns the fraction of communication that overlaps with computation, from 0 to 1.
  double hidden() const;
};

class StepTimesLog {
 public:
  // Sets the difference between rank 0's clock and this rank's.
  void set_clock_offset(int64_t nanoseconds) { offset_ = nanoseconds; }
  // Steps come in order; those beyond kMost are left out.
  void add(int64_t step, const StepTimes& times);
  // Of all ranks, by rank; all of them call it.
  Result<std::vector<RankTimes>> gather(const Ranks& ranks) const;

  static constexpr int64_t kMost = 100000;

 private:
  int64_t first_ = -1, offset_ = 0;
  std::vector<double> rows_;  // kColumns for each step since the first one
};

// As text: a line for each rank.
std::string to_table(const std::vector<RankTimes>& ranks);

}  // namespace tilewright::train
