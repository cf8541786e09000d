// Strided loads that neighbouring statements make of one square of memory.
#pragma once

#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// Load k, of statement first + k, reads column k of a square of n x n elements whose rows lie
// `stride` elements apart: n loads of n lanes each, n a power of two from 4 on. Empty when the
// statements from `first` on are not of that form, or one of them may change what a later one
// reads.
std::vector<const ir::Load*> columns_of_square(const std::vector<ir::Stmt>& statements,
                                               size_t first);

// Likewise load k reads elements k, k + n, k + 2n, ... of a stretch, all with the same lanes and
// mask; n is at most the number of lanes, and an n of them no wider than kWidestGroup
// (strided_stores.h).
std::vector<const ir::Load*> columns_of_stretch(const std::vector<ir::Stmt>& statements,
                                                size_t first);

}  // namespace tilewright::passes
