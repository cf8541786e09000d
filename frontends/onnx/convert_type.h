// TypeProto -> OnnxType.
#pragma once

#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"

namespace tilewright {

OnnxType convert_type(const onnx_format::TypeProto& proto);

}  // namespace tilewright
