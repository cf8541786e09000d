// Changes to a model that leave it a file of the right format, and wrong in one of its rules or in none.
#pragma once

#include <random>
#include <string>

#include "frontends/onnx/model.h"

namespace tilewright {

// Makes one to three changes of nodes, operands, attributes, types and constants, drawn from `random`; returns what
// they were.
std::string mutate(OnnxModel& model, std::mt19937_64& random);

}  // namespace tilewright
