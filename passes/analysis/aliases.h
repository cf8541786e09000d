// Which values need no memory of their own, as they lie in another's: what a slice takes, and what
// a concat joins or a pad surrounds when its producer can write it there at once.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::passes {

// Element i of the value is element start[b] + sum over the dimensions d with dim[d] == b of
// step[d] * i[d], for each dimension b, of value `in`.
struct Placement {
  ir::ValueId in = ir::kNone;  // has memory of its own
  std::vector<ir::Expr> start;
  std::vector<int> dim;
  std::vector<int64_t> step;
  ir::ValueId joined =
      ir::kNone;  // the result of a concat or pad that its producer writes a part of
  // Bytes, a multiple of kHostAlignment: from there on the value lies in `in` as it would in memory of its
  // own, so that kernels need not know of `in`. Pieces of one tensor that are used alike are used by one kernel.
  std::optional<int64_t> offset;

  // Where element i of the value lies in `in`.
  std::vector<ir::Expr> indices(const std::vector<ir::Expr>& i) const;
};
using Aliases = std::map<ir::ValueId, Placement>;

// Of a graph whose nodes have their groups and whose values have their layouts.
Aliases choose_aliases(const ir::Graph& graph);

// Is the node a slice of one of the graph's inputs, with an offset as above? It takes no work, whatever
// reads it.
bool is_piece_of_input(const ir::Graph& graph, const ir::Node& node);

}  // namespace tilewright::passes
