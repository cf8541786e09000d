// Weights that exporters wrote as nodes.
#pragma once

#include "frontends/onnx/model.h"

namespace tilewright {

// Tensors of floats that Constant nodes of the main graph hold become initialisers of the same names, so
// that they can be trained. Before functions are inlined: those of functions have no names in the file.
void lift_constants(OnnxModel& model);

}  // namespace tilewright
