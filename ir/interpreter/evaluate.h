// Integer expressions under given values of their variables, without compiling them first.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

using IntValues = std::unordered_map<const ExprNode*, int64_t>;  // by variable

// The value of a scalar integer or bool expression (uint64 values as their bits); nothing when a
// variable has no value, when it divides by zero, or when it is made of floats or memory. The side
// of a Select that is not chosen is not evaluated.
std::optional<int64_t> evaluate_int(const Expr& e, const IntValues& values);

}  // namespace tilewright::ir
