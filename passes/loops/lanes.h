// What vectorize_loops has to know of stores that combine lanes.
#pragma once

#include <optional>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// Does the value read the buffer that is stored to?
bool updates_itself(const ir::Store& st);

// c = op(c, term), where op is associative and commutative up to rounding, and neutral a term that
// changes nothing.
struct LaneReduction {
  ir::BinaryOp op;
  ir::Expr term, neutral;
};
std::optional<LaneReduction> find_lane_reduction(const ir::Store& st);

}  // namespace tilewright::passes
