#include "frontends/onnx/model.h"

#include <algorithm>

namespace tilewright {

bool is_overridable(const OnnxModel& model, const std::string& initializer) {
  constexpr int64_t kSince = 4;
  const std::vector<OnnxValueInfo>& inputs = model.graph.inputs;
  return model.ir_version >= kSince && model.graph.initializers.count(initializer) != 0 &&
         std::any_of(inputs.begin(), inputs.end(),
                     [&](const OnnxValueInfo& v) { return v.name == initializer; });
}

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
