// What follows from a block's fields alone.
#pragma once

#include <functional>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// The conjuncts of a condition for which `keep` holds; null when none is left.
Expr keep_conjuncts(const Expr& condition, const std::function<bool(const Expr&)>& keep);

// The part of a block's predicate that its init obeys; null: none. A conjunct on a loop that feeds
// reduce axes alone says which steps run, not which points of the parallel axes there are.
Expr init_predicate(const Block& block);

}  // namespace tilewright::ir
