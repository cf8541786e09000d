// Which values need no memory of their own, as they lie in another's: what a slice takes, and what
// a concat joins or a pad surrounds when its producer can write it there at once.
#pragma once

#include <map>

#include "ir/graph/graph.h"
#include "passes/analysis/placement.h"

namespace tilewright::passes {

using Aliases = std::map<ir::ValueId, Placement>;

// Of a graph whose nodes have their groups and whose values have their layouts.
Aliases choose_aliases(const ir::Graph& graph);

// Is the node a slice of one of the graph's inputs, with an offset as above? It takes no work, whatever
// reads it.
bool is_piece_of_input(const ir::Graph& graph, const ir::Node& node);

}  // namespace tilewright::passes
