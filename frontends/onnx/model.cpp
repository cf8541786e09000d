#include "frontends/onnx/model.h"

namespace tilewright {

std::string quote(std::string_view name) {
  constexpr size_t kLongest = 120;
  if (name.size() <= kLongest) return "'" + std::string(name) + "'";
  return "'" + std::string(name.substr(0, kLongest)) + "...'";
}

std::string describe_node(const OnnxNode& node, size_t index) {
  std::string op = node.domain.empty() ? node.op_type : node.domain + ":" + node.op_type;
  std::string label = node.name.empty() ? std::to_string(index) : quote(node.name);
  return "node " + label + " (" + op + ")";
}

}  // namespace tilewright
