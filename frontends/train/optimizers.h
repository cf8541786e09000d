// Optimisers as formulas over graph values, for all elements of a flat buffer at once.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/train/job.h"
#include "ir/formula/formula.h"

namespace tilewright::train {

// What changes from step to step and is the same for all parameters: scalars of the graph.
struct Rates {
  ir::V lr;    // f32
  ir::V step;  // i64, 0 is the first
};
struct Update {
  ir::V parameters;
  std::vector<ir::V> state;
};
// One optimiser: its name, the buffers that it keeps from step to step (0 at first), and what a step
// makes of parameters p, gradients g and these. Names and meaning of constants: torch.optim.
struct Optimizer {
  std::string_view name;
  std::vector<std::string_view> (*state)(const OptimizerJob&);
  Update (*update)(const OptimizerJob&, const Rates&, ir::V p, ir::V g,
                   const std::vector<ir::V>& state);
};
// Of the names that a job may have.
const Optimizer& find_optimizer(std::string_view name);

}  // namespace tilewright::train
