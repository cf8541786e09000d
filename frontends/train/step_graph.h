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

// Names of the states that hold initialisers of the model; others are the optimiser's, 0 at first.
inline constexpr const char *kParameters = "parameters", *kStatistics = "statistics";
// A tensor that lasts from step to step, f32 [elements].
struct State {
  std::string name;           // parameters, statistics, or one of the optimiser's buffers
  const Parameters* members;  // what lies in it
};
// Inputs: the model's, targets (where the loss has some), sample_ids (i64 [batch], which samples these
// are, where the model draws numbers), step (i64, 0 is the first), lr (f32), states. Outputs: the loss,
// all gradients before they are clipped, as parameters lie, and the states, updated in place.
struct StepGraph {
  ir::Graph graph;
  Wanted wanted;              // of the data
  bool draws = false;         // does the model draw numbers?
  std::vector<State> states;  // parameters first
};

// For batches of job.batch samples: dimension 0 of each input of the model. Errors: those of import; an
// input whose batch is another number; a loss that does not fit the output; operators that cannot be
// differentiated, all at once.
// `trained` must outlive the result.
Result<StepGraph> build_step(const OnnxModel& model, const Trained& trained, const Job& job);

}  // namespace tilewright::train
