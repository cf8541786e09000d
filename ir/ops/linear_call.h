// The call of an operator that is linear in one operand, as `transposed` names it.
#pragma once

#include "ir/graph/op.h"

namespace tilewright::ir {

// The node whose adjoint is wanted, in a graph of its own: its operands as those of `transposed`
// behind the first, with the linear one at its place.
struct LinearCall {
  Graph graph;
  Node node;
  size_t operand = 0;
};
// kInvalid: there is no such operator, or what it takes is not stated.
Result<LinearCall> linear_call(const NodeView& transposed);

}  // namespace tilewright::ir
