// Forms of a kernel to be measured: the usual one, its neighbours, mixtures around it, and random
// ones from all over the space.
#pragma once

#include <random>
#include <vector>

#include "passes/decisions/decision.h"
#include "tests/autotune/replay/replay_task.h"

namespace tilewright::autotune {

struct Form {
  passes::Answers answers;  // other than the usual ones
  passes::Trace schedule;
};

// The usual form first; no two have the same schedule, and none costs more than three times what
// the usual one does. About `count`; fewer where the space is small.
std::vector<Form> sample_forms(const ReplayKernel& k, size_t count, std::mt19937& random);

}  // namespace tilewright::autotune
