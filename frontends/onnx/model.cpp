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

const char* describe_kind(OnnxTypeKind kind) {
  switch (kind) {
    case OnnxTypeKind::kUnknown: return "of no type";
    case OnnxTypeKind::kTensor: return "a tensor";
    case OnnxTypeKind::kSparseTensor: return "a sparse tensor";
    case OnnxTypeKind::kSequence: return "a sequence";
    case OnnxTypeKind::kOptional: return "an optional";
    case OnnxTypeKind::kMap: return "a map";
    case OnnxTypeKind::kOpaque: return "an opaque value";
  }
  return "of an unknown kind";
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
