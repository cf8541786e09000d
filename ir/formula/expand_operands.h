// Operands that only the run may find to be broadcast.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ir/formula/node_builder.h"

namespace tilewright::ir {

// The operands of a node of the operator, with an `expand` before each whose extents may turn out to be 1
// where the others' are not (OpDef::broadcasts): behind it all extents agree, and whatever looks at the
// operator finds no more than numpy's rule for extents that are known. Operands come back unchanged where
// nothing is to be stretched or the operator does not broadcast; the last two dimensions of a product are
// those of its matrices. `equal(a, b)` tells whether the caller assumes two extents to be equal. It is asked
// only where neither is known to be 1 and they are not known to be equal.
std::vector<ValueId> expand_operands(
    NodeBuilder& n, std::string_view op, std::vector<ValueId> operands,
    const std::function<bool(const Expr& a, const Expr& b)>& equal);

}  // namespace tilewright::ir
