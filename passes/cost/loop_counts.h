// How often loops and branches run, by interval arithmetic: for costs, which need no proof.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

// Iterations of a loop inside loops of those ranges: the most, where they vary; kUnknownExtent where
// nothing bounds them.
int64_t iterations(const ir::For& loop, const ir::Ranges& around);

// The part of all iterations of the loops around in which a scalar condition holds, as if values
// were spread evenly between their bounds: exact for a comparison of one loop's variable. A half
// where nothing is known.
double likelihood(const ir::Expr& condition, const ir::Ranges& around);

}  // namespace tilewright::passes
