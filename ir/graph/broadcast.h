// Broadcasting of extents that only the run knows, by numpy's rule: two extents are equal, or one of
// them is 1.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// The extent of the result of operands of extents a and b: a number where one of them is a number other
// than 1, else an expression that the run evaluates. Joining an extent that is part of the result already
// changes nothing. Nothing where both are numbers that do not broadcast.
std::optional<Expr> broadcast_extent(const Expr& a, const Expr& b);

// The extents that such an expression is joined of; any other alone.
std::vector<Expr> joined_extents(const Expr& e);

// May an operand of extent `from` turn out to be repeated along a result of extent `to`? False where it is 1
// for sure, equal to the result, or more than 1.
bool may_repeat(const Expr& from, const Expr& to);

}  // namespace tilewright::ir
