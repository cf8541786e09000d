// Where a value's elements lie in another value.
#pragma once

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

// The identity: element i of the value is element i of `in`.
Placement same_place(ir::ValueId in, size_t rank);
// A placement in a value that is placed itself, as one in the latter's value.
Placement compose(const Placement& inner, const Placement& outer);
// Placement::offset for `value` in `whole`; nothing where there is none.
std::optional<int64_t> offset_of(const ir::Value& value, const ir::Value& whole,
                                 const Placement& p);

// How the result of a node lies in its operand: of a reshape or transpose, and of a slice. The other way
// round, how a reshape's or transpose's operand lies in its result. Nothing when that takes a division, or
// when the run alone knows.
std::optional<Placement> placement_of_view(const ir::Graph& graph, const ir::Node& node);
std::optional<Placement> placement_of_slice(const ir::Graph& graph, const ir::Node& node);
std::optional<Placement> placement_of_operand(const ir::Graph& graph, const ir::Node& node);

}  // namespace tilewright::passes
