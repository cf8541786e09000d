// The rules that model.h states for graphs and functions.
#pragma once

#include "frontends/onnx/model.h"
#include "runtime/core/result.h"

namespace tilewright {

// Errors, kInvalid unless stated, name the node or value:
// - every value has a name, and one definition in its graph (an initializer may give an input its
//   default); inner graphs may hide outer names;
// - what nodes and graph outputs use is defined, and before its use;
// - every operator's domain is imported, or the operator is a function of the model;
// - functions differ in (domain, name, overload), see nothing from outside, and only they refer to
//   attributes, their own; a default that is a graph is kUnsupported.
Status check_model(const OnnxModel& model);

// "domain:name" or "domain:name:overload", which tells functions apart.
std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload);

}  // namespace tilewright
