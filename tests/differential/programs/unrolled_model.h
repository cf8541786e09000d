// The reference for control flow: a model without If, Loop and Scan that does the same.
#pragma once

#include "frontends/onnx/onnx.pb.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// One run of a model, operator by operator.
struct UnrolledModel {
  // The operators that ran, each as often as it ran, and what they gave by the interpreter.
  GraphCall call;
  Tensors outputs;
};
// Follows the standard's text: a branch or the body of a loop is written out each time that it runs.
// `inputs`: in the model's order. Knows the operators that the generators of this folder draw, and
// fails the process at any other. Subgraphs state the extents of what they give.
UnrolledModel unroll(const onnx_format::ModelProto& model, const Tensors& inputs);

}  // namespace tilewright
