// Panels of columns of a product's right operand, each of which a tile reads as one stream.
#pragma once

#include "ir/graph/graph.h"
#include "ir/machine.h"

namespace tilewright::passes {

// The layout of operand 1 of a product, in panels as wide as the tiles that its kernel will have;
// empty where it is not worth a copy: b of `matmul`, the weights of `conv` and `winograd_conv`.
ir::Layout operand_panels(const ir::Graph& graph, const ir::Node& node,
                          const ir::MachineDescription& machine);

}  // namespace tilewright::passes
