// Indices that come from data.
#pragma once

#include "ir/graph/compute.h"

namespace tilewright::ir {

// Negative indices count from the end, as numpy's. For operators whose record states their
// indexed_dims: they are within the extent before a kernel sees them.
Expr wrapped_index(Expr index, const Expr& extent);
// Those out of range are taken as the nearest, so that no run reads outside.
Expr clamped_index(Expr index, const Expr& extent);

// i, which runs up to `extent`, kept below `limit` where extent may be larger.
Expr within(const Expr& i, const Expr& extent, const Expr& limit);

// The index of a tensor's first element.
inline Axes zeros(int rank) { return Axes(static_cast<size_t>(rank), Expr(0)); }

// Elements of a known integer operand as int64 expressions.
std::optional<std::vector<Expr>> known_dims(const NodeView& c, int operand);

// Finds the first constant whose magnitude exceeds 2^31. Adding it to an extent or multiplying it with one could
// overflow. Returns null if there is no such constant.
const Expr* beyond_extents(const std::vector<Expr>& numbers);

// "axis 3 of f32[2, 5]": the message for an axis outside the rank.
std::string axis_message(int64_t axis, const TensorType& type);
// Axes of a tensor brought into [0, rank), in their order. Errors: one that is none of its, or is named twice.
Result<std::vector<int>> distinct_axes(const std::vector<int64_t>& axes, const TensorType& type);

}  // namespace tilewright::ir
