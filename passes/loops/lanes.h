// What vectorize_loops has to know of stores: which of them combine lanes, and which may write
// lanes that are off.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

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

// Local buffers whose elements are set, before they are summed up, under a condition on the lane
// alone: what lies beyond it is never read.
std::unordered_set<const ir::BufferNode*> scratch_buffers(const ir::Stmt& s);

// Local buffers that stores write in pieces, one behind the other, and where the last piece begins:
// lanes beyond an earlier one are the next one's.
std::unordered_map<const ir::BufferNode*, int64_t> buffers_in_pieces(const ir::Stmt& s);

}  // namespace tilewright::passes
