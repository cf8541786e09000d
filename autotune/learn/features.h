// A form of a kernel as numbers that a model can learn from. They tell of loops and machines alone:
// names of models, operators and decisions have no say, and sizes are ratios, mostly logarithms, so
// that what was learned of one kernel or machine says something about another.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "passes/cost/loop_cost.h"

namespace tilewright::autotune {

using Features = std::vector<float>;

// Of a flat kernel, whose expected cost is `cost`. Finite, and always as many; the same on every CPU
// for the same machine description.
Features features_of(const ir::MachineDescription& machine, const ir::Kernel& flat,
                     const passes::LoopCost& cost);
// What each is: "share.l2", "hot.sums"; in this order.
const std::vector<std::string>& feature_names();
// How many of the first ones come from the analytic cost.
size_t analytic_features();

}  // namespace tilewright::autotune
