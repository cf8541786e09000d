// Weights that exporters wrote as nodes.
#pragma once

#include "frontends/onnx/model.h"

namespace tilewright {

// So that they can be trained, initialisers of the same names take the place of nodes of the main
// graph: of Constants that hold tensors of floats, and of Identities that copy an initialiser that is
// used elsewhere, too, if it is uniform or PyTorch wrote the model. Before functions are inlined: those
// of functions have no names in the file. And a Transpose takes the place of an initialiser that PyTorch's exporter
// made of another one, so that both stay one weight (OnnxGraph::transposed_copies).
void lift_constants(OnnxModel& model);

// Are they floats, of at least one dimension, and all the same? So are parameters that no one trained yet.
bool is_uniform(const TensorView& tensor);

}  // namespace tilewright
