// Optimisers as formulas over graph values, for all elements of a flat buffer at once.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "ir/formula/formula.h"

namespace tilewright::train {

// Values of the graph that updates depend on besides parameters and gradients.
struct Rates {
  ir::V lr;     // f32, a scalar
  ir::V step;   // i64, a scalar; 0 is the first
  ir::V decay;  // weight_decay, f32: a scalar, or by element where some parameters have none
  const Parameters& members;  // of the flat buffers
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
  // Names the state buffer that can overflow while the parameters stay finite; empty if a non-finite value in any
  // buffer always reaches the parameters.
  std::string_view overflows;
};
// The job's weight_decay as Rates have it. Errors: a pattern of no_decay that matches no parameter.
Result<ir::V> decay_of(ir::NodeBuilder& n, const OptimizerJob& job, const Parameters& members);
// Of the names that a job may have.
const Optimizer& find_optimizer(std::string_view name);

}  // namespace tilewright::train
