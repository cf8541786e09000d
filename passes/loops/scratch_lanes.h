// Which elements of a local tile nobody reads.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// Is each load of `buffer` in `body` (the loops below its Allocate) under a condition
// `part of its index < limit`, with one limit for all? What lies at the limit and beyond is then
// never used, and may be overwritten. Before vectorize_loops.
bool has_scratch_lanes(const ir::Stmt& body, const ir::Buffer& buffer);

}  // namespace tilewright::passes
