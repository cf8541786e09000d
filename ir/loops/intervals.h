// Arithmetic behind intervals and bounds.
#pragma once

#include "ir/loops/simplify.h"

namespace tilewright::ir {

// The value; nothing beyond 2^56, where interval arithmetic gives up.
std::optional<int64_t> bounded(__int128 v);

// Least (or, `upper`, largest) value of a sum when each ranged variable takes its extreme value;
// ranges may be symbolic.
std::optional<Linear> extreme(Linear l, const Ranges& over, bool upper, int depth = 0);

}  // namespace tilewright::ir
