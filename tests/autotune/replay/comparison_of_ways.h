// Ways of choosing what to measure, compared by the trials that they need on kept measurements.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/autotune/replay/base_model.h"
#include "tests/autotune/replay/replay_search.h"

namespace tilewright::autotune {

// As columns of a table: the policies, and what is learned on top of a base model that has seen no
// schedule by the task's rule.
enum class Way : uint8_t { kLearned, kAnalytic, kTrees, kRandom, kBase };
constexpr std::array kWays{Way::kLearned, Way::kAnalytic, Way::kTrees, Way::kRandom, Way::kBase};
const char* name(Way way);

struct TaskTrials {
  std::string task;
  size_t forms = 0;
  double gap = 0;  // from the usual form to the best of all, mean of the seeds
  // By way and seed: trials until 70 % of the gap are closed; 200 where they are not by then.
  std::array<std::vector<double>, kWays.size()> trials;
};
// Seeds 1, 2, ... of each task. `ways`: others stay empty. Runs for minutes.
Result<std::vector<TaskTrials>> compare_ways(const std::vector<ReplayTable>& tables,
                                             const std::vector<Way>& ways, uint32_t seeds);

// Geometric means, of one task or of all; over all pairs of task and seed, the same for the ratio of
// one way's trials to another's, and the chance of at least as many wins as there are if either
// were as good (sign test, pairs that are alike left out).
double mean_trials(const TaskTrials& task, Way way);
double mean_trials(const std::vector<TaskTrials>& tasks, Way way);
struct Advantage {
  double ratio = 1;
  size_t wins = 0, losses = 0;
  double p = 1;
};
Advantage advantage(const std::vector<TaskTrials>& tasks, Way way, Way over);

// Gaps of 5 % that were stated within `most` trials, and those of them that held.
struct StatedGaps {
  size_t runs = 0, stated = 0, held = 0;
  double trials = 0;  // until then, on average
};
Result<StatedGaps> stated_gaps(const std::vector<ReplayTable>& tables, uint32_t seeds, size_t most);

}  // namespace tilewright::autotune
