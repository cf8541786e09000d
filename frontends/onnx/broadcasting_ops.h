// Operators of which the standard says that operands broadcast against one another.
#pragma once

#include "frontends/onnx/model.h"

namespace tilewright::onnx {

// Returns whether the standard lets the node's operands broadcast. The operands of any other operator must
// have equal extents, even where its importer emits operators that broadcast.
bool broadcasts(const OnnxNode& node);

}  // namespace tilewright::onnx
