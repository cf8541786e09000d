// Which axis of an operand of a product the results lie along.
#pragma once

#include "ir/graph/graph.h"

namespace tilewright::passes {

// The dimension of operand i that moves with the innermost axis of the result, where it is not the
// operand's own innermost one and each element is used for several rows: vectors of results are to
// read it side by side. -1 for all others.
int dimension_to_pack(const ir::Graph& graph, const ir::Node& node, size_t i);

}  // namespace tilewright::passes
