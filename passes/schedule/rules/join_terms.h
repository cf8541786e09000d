#pragma once

#include <string>

#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// The last axes that a block sums over become one as long as addresses run on from each to the next, so that it can
// be cut anywhere. Exact kernels say which.
void join_terms(ScheduleState& s, const std::string& block);

}  // namespace tilewright::passes
