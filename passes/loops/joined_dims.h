// Dimensions of a temporary that are addressed as one, and what of them an iteration touches.
//
// Rows of joined axes have quotients and remainders as indices: only together these say which part of the dimensions
// they touch.
#pragma once

#include "passes/loops/buffer_uses.h"

namespace tilewright::passes {

// Dimensions `first` to `last` of a row-major buffer, addressed as one.
struct DimGroup {
  size_t first, last;
};
ir::Expr joined_index(const std::vector<ir::Expr>& indices, const std::vector<ir::Expr>& shape,
                      DimGroup g);
ir::Expr joined_extent(const std::vector<ir::Expr>& shape, DimGroup g);

struct Region {
  ir::Expr low, extent;
};
// What one iteration of the loops up to `depth` touches of a group of dimensions; false when that is not known or
// not less.
bool shrinks(const ir::BufferNode& b, const std::vector<BufferUse>& uses, size_t depth, DimGroup g,
             Region& r);
// All dimensions of a buffer that lies row by row.
std::vector<DimGroup> join_dims(const ir::BufferNode& b, const std::vector<BufferUse>& uses,
                                size_t depth);

}  // namespace tilewright::passes
