// Sizes of blocks and buffers as schedules and costs take them, also where only the run knows them.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::passes {

constexpr int64_t kUnknownExtent = 64;  // what symbolic extents are taken for

// The number, or `fallback` for an extent that is not one.
int64_t extent_or(const ir::Expr& e, int64_t fallback);
// With each symbol taken for `symbol`; at least 1.
int64_t extent_with(const ir::Expr& e, int64_t symbol);
// How often a block runs: the product of its axes, at most 2^40.
int64_t instances(const ir::Block& block);
// Bytes of all elements, at most 2^40; 0 where an extent is not known.
int64_t bytes_of(const ir::BufferNode& b);

}  // namespace tilewright::passes
