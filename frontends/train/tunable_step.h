// A step of a training job as the tuner takes any program: a graph, and what it is run on.
#pragma once

#include <vector>

#include "frontends/train/job.h"
#include "ir/graph/graph.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// Nothing is updated in place, so that each run gives the same: what the step updates is a result. Kernels,
// and so what is found for them, are those of the step. Inputs are the first step's, in the graph's order.
struct TunableStep {
  ir::Graph graph;
  std::vector<Tensor> inputs;
};
// The step, or its part and its update where the job accumulates. Errors: those of Trainer::create.
Result<std::vector<TunableStep>> tunable_steps(const Job& job);

}  // namespace tilewright::train
