// The parsed messages of a stripped model -> the plain structs of model.h.
#pragma once

#include "frontends/onnx/decode_tensor.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"
#include "runtime/core/result.h"

namespace tilewright {

// Checks versions, tensors and attributes, and that nothing is given twice (initializers,
// attributes, opset imports); check_model does what concerns names and order.
Result<std::unique_ptr<OnnxModel>> convert_model(const onnx_format::ModelProto& proto,
                                                 TensorSource& source);

}  // namespace tilewright
