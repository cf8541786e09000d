// How a block reaches memory: for each load and store, by how many elements the address moves per
// axis.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

struct BlockAccess {
  ir::Buffer buffer;
  bool write = false;
  std::vector<ir::Expr> indices;
  // Per axis of the block: elements per step, as an expression without axes; null when the address
  // is not linear in it.
  std::vector<ir::Expr> strides;
  // The stride when it is a constant.
  std::optional<int64_t> stride(size_t axis) const {
    return strides[axis] ? ir::as_int(strides[axis]) : std::nullopt;
  }
};
std::vector<BlockAccess> block_accesses(const ir::Block& block);

}  // namespace tilewright::passes
