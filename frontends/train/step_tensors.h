// What programs of a step read and give besides the data: the state, what the optimiser has to know, results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/step_graph.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// By the names of the graphs' inputs behind the data, and of their outputs: programs share them.
using StepTensors = std::map<std::string, Tensor>;
// Of the first step: parameters and statistics as the model has them, zeros. Errors: kLimit for memory.
Result<StepTensors> step_tensors(const OnnxModel& model, const Job& job, const Trained& trained,
                                 const std::vector<State>& states);

// Those of the inputs of a graph of a step, behind as many of the data, which are empty.
std::vector<Tensor> tensors_of(const ir::Graph& graph, size_t columns, const StepTensors& tensors);

}  // namespace tilewright::train
