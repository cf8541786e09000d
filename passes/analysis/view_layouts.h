// Layouts in which a reshape or transpose moves nothing.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::passes {

// The layout that values have without one; equal layouts of one shape compare equal (extents of 1
// are ignored).
bool is_row_major(const ir::Layout& layout, const ir::TensorType& type);
bool is_same_order(const ir::Layout& a, const ir::Layout& b, const ir::TensorType& type);
// Dimensions of a tensor and of its reshape that hold the same elements: ranges of both. Empty when
// that cannot be told.
struct DimRange {
  // Half-open: dimensions [from_begin, from_end) become [to_begin, to_end).
  size_t from_begin, from_end, to_begin, to_end;
};
std::vector<DimRange> matching_dims(const std::vector<ir::Expr>& from,
                                    const std::vector<ir::Expr>& to);
// The layout of a reshape of x in the memory of x; nothing when there is none.
std::optional<ir::Layout> reshaped_layout(const ir::Layout& x, const ir::TensorType& from,
                                          const ir::TensorType& to);
// The layout of transpose(x, perm) in the memory of x, whose own layout is a permutation.
ir::Layout transposed_layout(const ir::Layout& x, const std::vector<int64_t>& perm);

// Does the node move nothing? So does a reshape or transpose where the layouts of both sides differ
// as it says.
bool is_view(const ir::Graph& graph, const ir::Node& node);

}  // namespace tilewright::passes
