// In which order the dimensions of parameters lie, for the whole run.
#pragma once

#include "frontends/train/parameters.h"
#include "ir/graph/graph.h"

namespace tilewright::train {

// Gives parameters, which are row-major pieces of the input kParameters of a step's graph, the order in which its
// kernels read them. False: all stay row-major.
bool choose_orders(const ir::Graph& step, Parameters& parameters);

}  // namespace tilewright::train
