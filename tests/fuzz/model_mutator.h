// Structural mutations of a model. The result is well-formed and may break rules of the standard.
#pragma once

#include <random>
#include <string>

#include "frontends/onnx/model.h"

namespace tilewright {

// Makes one to three changes of nodes, operands, attributes, types and constants, drawn from `random`; returns what
// they were.
std::string mutate(OnnxModel& model, std::mt19937_64& random);

}  // namespace tilewright
