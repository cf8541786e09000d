// One copy of a function body for one call.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"

namespace tilewright {

// One copy of a function's body: what its formal names stand for, and names for the rest.
struct Instance {
  std::map<std::string, std::string> values;        // of the body -> of the caller
  std::map<std::string, OnnxAttribute> attributes;  // of the function, as given or by default
  std::string prefix;                               // of node names
  std::function<std::string(const std::string&)> fresh_name;  // for a value of this body
  size_t weight = 0;  // elements of the attributes that were copied
};

// The nodes of a body with values renamed (names missing in `instance.values` get fresh ones),
// attribute references resolved, and graphs in attributes copied.
std::vector<OnnxNode> instantiate_body(const std::vector<OnnxNode>& body, Instance& instance);

}  // namespace tilewright
