// Random models with Loop, Scan, If and nestings of them.
#pragma once

#include <cstdint>

#include "tests/differential/programs/model_draw.h"

namespace tilewright {

// What the models are drawn for.
enum class Steadiness : uint8_t {
  kAny,
  kSteady,  // every pass of a loop needs as much memory as any other, and nothing grows with the passes
};

struct ControlFlowModel {
  // The first inputs say how many passes loops have and which branches are taken.
  onnx_format::ModelProto model;
  std::vector<Drawn> inputs;
};
// The same model for the same seed.
ControlFlowModel draw_control_flow(uint64_t seed, Steadiness steadiness = Steadiness::kAny);
// Values for its inputs, other ones for each number.
Tensors draw_inputs(const ControlFlowModel& model, uint64_t number);

// Numbers of passes are the inputs of these names, up to kMostPasses each.
inline constexpr int64_t kMostPasses = 4;

}  // namespace tilewright
