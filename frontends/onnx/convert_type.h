// TypeProto -> OnnxType.
#pragma once

#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"

namespace tilewright {

// A type message of the format as a plain struct; what the message does not say stays unknown.
OnnxType convert_type(const onnx_format::TypeProto& proto);

}  // namespace tilewright
