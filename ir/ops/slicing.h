// The operator slice, of the family of movements.
#pragma once

#include <vector>

#include "ir/graph/op.h"

namespace tilewright::ir {

// Its record, for the table of movement_ops().
OpDef slice_op();

// What a slice takes of one dimension; start and extent are null when only the run knows them.
struct SliceAxis {
  // `extent` elements from `start` on, `step` apart; a negative step goes backwards.
  Expr start, step, extent;
};
// By dimension, of a node that passed type inference.
std::vector<SliceAxis> known_slice(const NodeView& slice);

}  // namespace tilewright::ir
