// Operators of which the standard says that operands broadcast against one another.
#pragma once

#include "frontends/onnx/model.h"

namespace tilewright::onnx {

// May an extent of an operand of this node be 1 where the result's is not? Of other operators' operands
// all extents that meet must be equal, however the importer computes them.
bool broadcasts(const OnnxNode& node);

}  // namespace tilewright::onnx
