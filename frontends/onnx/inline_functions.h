// Model-local functions -> their bodies.
#pragma once

#include "frontends/onnx/model.h"
#include "runtime/core/result.h"

namespace tilewright {

// Limits on what a small file can ask for: functions that call functions twice over would otherwise
// double with every level.
inline constexpr size_t kMaxInlinedNodes = 1'000'000;
inline constexpr size_t kMaxCallDepth = 64;

// Replaces every call of a function of the model by the nodes of its body, in the main graph and in
// graphs inside attributes, until none is left; model.functions is empty afterwards. `model` has
// passed check_model and still passes it.
// - Values of a body are called CALL/VALUE, nodes CALL/NODE, where CALL is the name of the calling
//   node, or of the function where the node has none; a number is added where a name is taken.
// - A reference to an attribute that the call leaves out and that has no default is dropped.
// - The nodes keep the opset versions of the function.
// Errors: kInvalid (recursion, a call with too many inputs or outputs or with an attribute that the
// function lacks), kLimit (kMaxInlinedNodes, kMaxCallDepth).
Status inline_functions(OnnxModel& model);

}  // namespace tilewright
