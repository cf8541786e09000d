// The dependence test of auto_vectorize: may iterations of a loop run side by side?
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// What running iterations side by side asks for, where they may.
struct LanePlan {
  std::vector<const ir::Store*> folds;  // into one element each, by operations that are exact
  std::vector<ir::Buffer> privates;     // scalars of one iteration, of which each lane has its own
  bool apart = false;                   // lanes go around each store by itself, inside other loops
  int element_bytes = 1;      // of the widest elements that are stored or move with the loop
  bool moves_locals = false;  // walks through local buffers, which have no room behind
};

// The plan of a serial loop of which every order of its iterations computes the same bits; nothing
// where that is not proven. Accesses are logical: an index stays below its dimension's extent.
std::optional<LanePlan> plan_lanes(const ir::For& loop);

}  // namespace tilewright::passes
