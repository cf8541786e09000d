// How a block reaches memory: for each load and store, by how many elements the address moves per
// axis.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

struct BlockAccess {
  // What is accessed, and the logical indices over the block's axes.
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
// Loads in the order of the walk, then stores; `body` alone, not the init. The last one is a simple
// block's store.
std::vector<BlockAccess> block_accesses(const ir::Block& block);

// The loop that feeds an axis directly (its binding is that loop's variable); empty when it is more
// than that.
std::string loop_of_axis(const ir::Block& block, size_t axis);
// Do all addresses run on from the inner axis, of this extent, to the outer one?
bool runs_on(const std::vector<BlockAccess>& accesses, size_t outer, size_t inner,
             const ir::Expr& inner_extent);
// The stride of an axis, to order axes by: unknown ones are taken for longer than any, those that
// are not linear for longer still.
int64_t stride_or_far(const BlockAccess& access, size_t axis);

}  // namespace tilewright::passes
