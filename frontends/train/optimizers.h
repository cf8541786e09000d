// Optimisers as formulas over graph values, for all elements of a flat buffer at once.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/train/job.h"
#include "ir/formula/formula.h"

namespace tilewright::train {

// What changes from step to step and is the same for all parameters: computed by the caller, in f64.
struct Rates {
  double lr = 0;
  // Of Adam's averages, which begin at 0: 1 / (1 - beta^t).
  double correction1 = 1, correction2 = 1;
};
// step: 0 is the first.
Rates rates_at(const OptimizerJob& job, int64_t step);

// The same as values of the graph, f32 scalars.
struct RateValues {
  ir::V lr, correction1, correction2;
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
  Update (*update)(const OptimizerJob&, const RateValues&, ir::V p, ir::V g,
                   const std::vector<ir::V>& state);
};
// Of the names that a job may have.
const Optimizer& find_optimizer(std::string_view name);

}  // namespace tilewright::train
