// One step of training as a graph: the model, its loss, gradients, and what the optimiser makes of them.
#pragma once

#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/train/data.h"
#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "ir/graph/graph.h"

namespace tilewright::train {

// Inputs: the model's, targets (where the loss has some), the rates (optimizers.h: lr, correction1,
// correction2), parameters, then the optimiser's buffers. Outputs: the loss, all gradients before they
// are clipped, and what updates parameters and buffers in place. Parameters, gradients and buffers are
// f32 [parameters.elements] alike.
struct StepGraph {
  ir::Graph graph;
  Wanted wanted;                    // of the data
  std::vector<std::string> states;  // names of the optimiser's buffers
};

// For batches of job.batch samples: dimension 0 of each input of the model. Errors: those of import; an
// input whose batch is another number; a loss that does not fit the output; operators that cannot be
// differentiated, all at once.
Result<StepGraph> build_step(const OnnxModel& model, const Parameters& parameters, const Job& job);

}  // namespace tilewright::train
