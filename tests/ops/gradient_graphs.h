// Calls of operators as graphs with a loss.
#pragma once

#include <vector>

#include "tests/ops/gradient_cases.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// The call with its loss as its only output.
struct Differentiable {
  ir::Graph graph;
  Tensors inputs;
  std::vector<ir::ValueId> of;  // floats among the inputs
  ir::ValueId loss = ir::kNone;
};
Result<Differentiable> graph_of(const GradientCase& c);

}  // namespace tilewright
