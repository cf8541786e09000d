// The operator slice, of the family of movements.
#pragma once

#include <vector>

#include "ir/graph/op.h"

namespace tilewright::ir {

OpDef slice_op();

// What a slice takes of one dimension; start and extent are null when only the run knows them.
struct SliceAxis {
  Expr start, step, extent;
};
// By dimension, of a node that passed type inference.
std::vector<SliceAxis> known_slice(const NodeView& slice);

}  // namespace tilewright::ir
