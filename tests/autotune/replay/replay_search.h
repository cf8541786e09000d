// The search over kept measurements: which forms it would have measured, in which order, and what it
// would have said. No clock has a say.
#pragma once

#include <memory>
#include <vector>

#include "autotune/search/prospects.h"
#include "tests/autotune/replay/replay_table.h"

namespace tilewright::autotune {

// How the next form is chosen.
enum class Policy {
  kLearned,   // the analytic cost, and what is learned on top of it
  kAnalytic,  // the analytic cost alone
  kTrees,     // trees alone: neither the analytic cost nor features that come from it
  kRandom,
};
const char* name(Policy policy);

struct ReplayOptions {
  Policy policy = Policy::kLearned;
  const Boosting* boosting = nullptr;    // not null
  std::shared_ptr<const Ensemble> base;  // null: none; for kLearned alone
  uint32_t seed = 1;
  // When it ends: after so many trials; when this part of the gap is closed (above 1: never); when
  // no more than this gap is stated.
  size_t most = 100;
  double close = 2, state = -1;
};
struct ReplayTrial {
  // By both measurements: the true ratio of the best form so far, which is the best by what was seen.
  double best = 1;
  // What was stated, as a part of the best form's time, and what it is in truth: how much faster the
  // best form of all is.
  double stated_gap = 1, true_gap = 1;
};
struct ReplayRun {
  double usual_gap = 0;  // how much faster than the usual form the best of all is
  std::vector<ReplayTrial> trials;
  bool closed = false;  // ReplayOptions::close
};

// Each seed has a random 70 % of the table's forms, and sees one of their two measurements.
Result<ReplayRun> replay(const ReplayTable& table, const ReplayOptions& options);

}  // namespace tilewright::autotune
