// What a DotTile means, in loops of Dots.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Serial loops over rows and groups around one Dot of `columns` lanes: what the interpreter runs,
// and what is emitted for a machine without a matrix unit. Of sums in floats the order is this one.
Stmt as_dots(const DotTile& tile);

}  // namespace tilewright::ir
