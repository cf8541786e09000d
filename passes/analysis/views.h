// Nodes whose result lies where their operand does.
#pragma once

#include "ir/graph/graph.h"

namespace tilewright::passes {

// Does the node move nothing? So does a reshape or transpose where the layouts of both sides differ
// as it says.
bool is_view(const ir::Graph& graph, const ir::Node& node);

}  // namespace tilewright::passes
