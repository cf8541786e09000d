// Layouts in which a reshape or transpose moves nothing.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::ir {

// The layout that values have without one; equal layouts of one shape compare equal (extents of 1
// are ignored).
bool is_row_major(const Layout& layout, const TensorType& type);
bool is_same_order(const Layout& a, const Layout& b, const TensorType& type);
// Dimensions of a tensor and of its reshape that hold the same elements: ranges of both. Empty when
// that cannot be told.
struct DimRange {
  // Half-open: dimensions [from_begin, from_end) become [to_begin, to_end).
  size_t from_begin, from_end, to_begin, to_end;
};
std::vector<DimRange> matching_dims(const std::vector<Expr>& from, const std::vector<Expr>& to);
// The layout of a reshape of x in the memory of x; nothing when there is none.
std::optional<Layout> reshaped_layout(const Layout& x, const TensorType& from,
                                      const TensorType& to);
// The layout of transpose(x, perm) in the memory of x, whose own layout is a permutation.
Layout transposed_layout(const Layout& x, const std::vector<int64_t>& perm);

// Elements from one index to the next, by dimension; nothing where blocks or unknown extents forbid.
std::optional<std::vector<int64_t>> strides_of(const TensorType& type, const Layout& layout);

}  // namespace tilewright::ir
