// Blocks over the same rows in one nest.
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// Several blocks over the same rows, in the order they run, share the row loops; reductions along
// the row use vectors of partial results. False, and nothing changes, where they have no rows in
// common.
bool schedule_rows(ScheduleState& s, const std::vector<std::string>& blocks);
// The same under loops of a block before them, of which there is one for each axis before that of the rows,
// or one for all of these.
bool schedule_rows_inside(ScheduleState& s, const std::vector<std::string>& blocks,
                          const std::vector<std::string>& loops);

// rows_vectors.cpp: cuts the innermost reduction axis of a block into vectors of partial results,
// adds the block of these, if any, to `order`.
bool vectorize_reduction(ScheduleState& s, const std::string& name,
                         std::vector<std::string>& order);
// The axes of a pointwise block beyond the rows: the innermost is split into vectors.
bool vectorize_inner(ScheduleState& s, const std::string& name, size_t rows);

}  // namespace tilewright::passes
