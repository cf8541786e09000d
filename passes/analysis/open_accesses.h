// Accesses of parameters that a kernel's own text does not prove to lie inside.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "passes/analysis/integer_elements.h"

namespace tilewright::passes {

// An index of a load or store that is not proven to lie in [0, extent).
struct OpenAccess {
  // The Load or the Store.
  const void* access = nullptr;
  ir::Buffer buffer;
  int dim = 0;
  ir::Expr index, extent;
  // The least and the largest index over all loops around, over the kernel's scalars; null where there is no bound.
  // Both are 0 and `extent` - 1 where that end is proven.
  ir::Expr low, high;
  // The product of the symbolic extents of loops around, each 1 at most: 0 where the access never runs. Not certain:
  // a condition may leave it out where this is 1.
  ir::Expr runs;
  bool certain = true;
};

// All of them, for parameters of a kernel with blocks (Stage::kBlocks); `known` holds whenever it runs.
std::vector<OpenAccess> open_accesses(const ir::Kernel& kernel,
                                      const std::vector<CheckedElements>& checked,
                                      const std::vector<ir::Requirement>& known);

}  // namespace tilewright::passes
