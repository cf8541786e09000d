// Random models with state: inputs that a run updates in place, read before, after, in branches and
// by views of them.
#pragma once

#include <cstdint>

#include "ir/graph/graph.h"
#include "tests/differential/programs/model_draw.h"

namespace tilewright {

struct StateModel {
  // Places of inputs and of the outputs that they become.
  onnx_format::ModelProto model;
  std::vector<Drawn> inputs;
  std::vector<ir::Graph::Update> updates;
};
// The same model for the same seed.
StateModel draw_state(uint64_t seed);
// Values for its inputs, other ones for each number.
Tensors draw_inputs(const StateModel& model, uint64_t number);

}  // namespace tilewright
