// Single changes of a model, each kind at each place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.pb.h"

namespace tilewright {

struct ModelChange {
  std::string what;  // "input 'x': extent 1 is 0"
  std::function<void(onnx_format::ModelProto&)> apply;
};

// Other types, ranks and extents of inputs and constants, given and symbolic; other elements of constants of integers;
// operands that are absent or one too many; other values, kinds and lengths of the attributes that the operator's
// signature has, integers up to 2^63; and each opset. Nodes of bodies are left alone.
std::vector<ModelChange> single_changes(const onnx_format::ModelProto& model);

}  // namespace tilewright
