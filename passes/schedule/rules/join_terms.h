#pragma once

#include <string>

#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// Two axes of a block, whose loops stand one right inside the other, become one.
bool join_two_axes(ScheduleState& s, const ir::Block& block, size_t outer, size_t inner);

// The last axes that a block sums over become one as long as addresses run on from each to the next, so that it can
// be cut anywhere. Exact kernels say which.
void join_terms(ScheduleState& s, const std::string& block);

}  // namespace tilewright::passes
