// One step of training as a graph: the model, its loss, gradients, and what the optimiser makes of them.
#pragma once

#include <optional>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/train/data.h"
#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "frontends/train/step_update.h"
#include "ir/graph/graph.h"

namespace tilewright::train {

// Inputs: the model's, targets (where the loss has some), sample_ids (i64 [batch], which samples these
// are, where the model draws numbers), step (i64, 0 is the first), lr (f32), states. Outputs: the loss,
// all gradients before they are clipped, as parameters lie, where the job wants them in a file, and the states,
// updated in place.
//
// With job.accumulate parts, `graph` is one of them. Instead of lr it has part (i64, 0 is the first) and
// parameters, and it updates statistics and gradients (f32, as parameters lie): the averages of the parts
// so far. `update` follows the last part. Inputs: step, lr, gradients, and the other states, which
// it updates.
struct StepGraph {
  ir::Graph graph;
  std::optional<ir::Graph> update;
  Wanted wanted;                  // of the data
  std::vector<State> states;      // parameters first
  std::vector<ir::ValueId> made;  // of a part: the gradient of each parameter, in the graph
};

// For batches of job.part() samples: dimension 0 of each input of the model. Errors: those of import; an
// input whose batch is another number; a loss that does not fit the output; operators that cannot be
// differentiated, all at once.
// `trained` must outlive the result; its parameters get the orders in which steps want them.
Result<StepGraph> build_step(const OnnxModel& model, Trained& trained, const Job& job);

}  // namespace tilewright::train
