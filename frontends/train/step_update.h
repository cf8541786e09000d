// What a step makes of its gradients, as part of a graph: they are clipped, then the optimiser's formulas.
#pragma once

#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "frontends/train/step_nodes.h"

namespace tilewright::train {

// Names of the states that hold initialisers of the model, and of the gradients' averages where a step has
// several parts; others are the optimiser's, 0 at first.
inline constexpr const char *kParameters = "parameters", *kStatistics = "statistics",
                            *kGradients = "gradients";
// What the parts of a step make of the statistics, averaged (Job::averages_statistics).
inline constexpr const char* kNewStatistics = "new_statistics";
// Do the gradients of a step lie in memory, all at once? Otherwise parameters may change where these come about.
inline bool keeps_gradients(const Job& job) { return job.is_cut() || !job.gradients.empty(); }
// A tensor that lasts from step to step, f32 [elements].
struct State {
  std::string name;           // parameters, statistics, or one of the optimiser's buffers
  const Parameters* members;  // what lies in it
};
// The value, whose elements the run checks: an infinity or NaN among them is a failure of the step (Session::
// met_not_finite), of which the states tell where it lies.
ir::ValueId watched(StepNodes& n, ir::ValueId v);
// A state that the graph updates: its input, and the value that this is afterwards.
struct Updated {
  State state;
  ir::ValueId input, value;
};

// Parameters and the optimiser's buffers, whose inputs are new ones of the graph. Those are watched in which every
// infinity and NaN of a gradient or a buffer shows (Optimizer::overflows). lr: f32, step: i64, scalars. Errors: a
// pattern of optimizer.no_decay that matches no parameter.
Result<std::vector<Updated>> add_update(StepNodes& n, const Job& job, const Parameters& members,
                                        ir::V lr, ir::V step, ir::ValueId parameters,
                                        ir::V gradients);

// What is updated is read and given last, in pairs: behind `inputs` and the graph's outputs.
void set_updates(ir::Graph& graph, std::vector<ir::ValueId> inputs,
                 const std::vector<Updated>& updated);

}  // namespace tilewright::train
