// Strided stores of neighbouring statements that together fill a stretch of memory.
#pragma once

#include <vector>

#include "ir/loops/linear.h"
#include "ir/loops/nodes.h"

namespace tilewright::passes {

constexpr int kWidestGroup = 64;  // bytes

// Returns whether the masks of two accesses are both null or structurally equal.
inline bool same_mask(const ir::Expr& a, const ir::Expr& b) {
  return a && b ? ir::same_expr(a, b) : !a && !b;
}

// The number n of statements, from `first` on, of which number k stores elements k, k + n, k + 2n,
// ... of a stretch, all with the same lanes and mask; 0 where they are not of that form, an n of
// them is wider than kWidestGroup, or wider than 8 bytes and more than there are lanes, or one may
// read what an earlier one stores.
int stores_of_stretch(const std::vector<ir::Stmt>& statements, size_t first);

}  // namespace tilewright::passes
