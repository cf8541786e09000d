#include "frontends/onnx/find_dropouts.h"

#include <cmath>
#include <cstring>
#include <optional>

namespace tilewright::onnx {

namespace {

// What the search needs of a node with one result.
struct PlainNode {
  std::string op;
  std::vector<std::string> inputs;
  bool is_unit = true;  // of RandomUniformLike: draws from [0, 1)
};

class Search {
 public:
  std::map<std::string, PlainNode> nodes;  // by result
  std::map<std::string, double> scalars;

  std::map<std::string, std::string> run() const {
    std::map<std::string, std::string> found;
    for (const auto& [result, node] : nodes) {
      if (node.op != "Mul" || node.inputs.size() != 2) continue;
      for (const size_t k : {0, 1})
        if (is_mask(node.inputs[k]) && !is_mask(node.inputs[1 - k]))
          found.emplace(result, node.inputs[1 - k]);
    }
    return found;
  }

 private:
  const PlainNode* made_by(const std::string& name, const char* op, size_t inputs) const {
    const auto it = nodes.find(name);
    return it != nodes.end() && it->second.op == op && it->second.inputs.size() >= inputs
               ? &it->second
               : nullptr;
  }
  // Skips a type conversion: returns the name of its operand, or `name` where no conversion makes the value.
  const std::string& without_cast(const std::string& name) const {
    if (const auto* cast = made_by(name, "Cast", 1)) return cast->inputs[0];
    if (const auto* cast = made_by(name, "CastLike", 1)) return cast->inputs[0];
    return name;
  }
  std::optional<double> number(const std::string& name) const {
    const auto it = scalars.find(without_cast(name));
    return it == scalars.end() ? std::nullopt : std::optional(it->second);
  }
  bool is_mask(const std::string& name) const {
    const auto* scaled = made_by(name, "Div", 2);
    if (!scaled) return false;
    const auto* kept = made_by(without_cast(scaled->inputs[0]), "Less", 2);
    const auto* drawn = kept ? made_by(kept->inputs[0], "RandomUniformLike", 1) : nullptr;
    if (!drawn || !drawn->is_unit) return false;
    const auto part = number(kept->inputs[1]), by = number(scaled->inputs[1]);
    constexpr double kF32 = 1e-6;  // the file may have one of both in f32, the other in f64
    return part && by && *part > 0 && std::abs(*part - *by) <= kF32 * *part;
  }
};

std::optional<double> scalar_of(const TensorView& t) {
  const auto dtype = t.dtype();
  if (!dtype || element_count(t.shape).value_or(0) != 1) return std::nullopt;
  float single = 0;
  double wide = 0;
  if (*dtype == DType::kFloat32 && t.bytes == sizeof(single)) {
    std::memcpy(&single, t.data, sizeof(single));
    return single;
  }
  if (*dtype == DType::kFloat64 && t.bytes == sizeof(wide)) {
    std::memcpy(&wide, t.data, sizeof(wide));
    return wide;
  }
  return std::nullopt;
}
double float_of(const OnnxNode& node, const char* name, double fallback) {
  const auto it = node.attributes.find(name);
  const auto* value = it == node.attributes.end() ? nullptr : std::get_if<float>(&it->second);
  return value ? *value : fallback;
}

std::optional<double> scalar_of(const onnx_format::TensorProto& t) {
  if (t.dims_size() > 1 || (t.dims_size() == 1 && t.dims(0) != 1)) return std::nullopt;
  float single = 0;
  double wide = 0;
  if (t.data_type() == 1) {
    if (t.float_data_size() == 1) return t.float_data(0);
    if (t.raw_data().size() != sizeof(single)) return std::nullopt;
    std::memcpy(&single, t.raw_data().data(), sizeof(single));
    return single;
  }
  if (t.data_type() != 11) return std::nullopt;
  if (t.double_data_size() == 1) return t.double_data(0);
  if (t.raw_data().size() != sizeof(wide)) return std::nullopt;
  std::memcpy(&wide, t.raw_data().data(), sizeof(wide));
  return wide;
}

}  // namespace

std::map<std::string, std::string> find_dropouts(const OnnxGraph& graph) {
  Search search;
  for (const auto& [name, value] : graph.initializers)
    if (const auto scalar = scalar_of(value)) search.scalars[name] = *scalar;
  for (const OnnxNode& node : graph.nodes) {
    if (!node.domain.empty() || node.outputs.size() != 1) continue;
    PlainNode& plain = search.nodes[node.outputs[0]];
    plain = {node.op_type, node.inputs,
             float_of(node, "low", 0) == 0 && float_of(node, "high", 1) == 1};
    if (node.op_type != "Constant") continue;
    for (const auto& [name, value] : node.attributes) {
      if (const auto* number = std::get_if<float>(&value))
        search.scalars[node.outputs[0]] = *number;
      if (const auto* tensor = std::get_if<TensorView>(&value))
        if (const auto scalar = scalar_of(*tensor)) search.scalars[node.outputs[0]] = *scalar;
    }
  }
  return search.run();
}

std::map<std::string, std::string> find_dropouts(
    const google::protobuf::RepeatedPtrField<onnx_format::NodeProto>& nodes,
    const google::protobuf::RepeatedPtrField<onnx_format::TensorProto>& initializers) {
  Search search;
  for (const onnx_format::TensorProto& t : initializers)
    if (const auto scalar = scalar_of(t)) search.scalars[t.name()] = *scalar;
  for (const onnx_format::NodeProto& node : nodes) {
    const bool is_standard = node.domain().empty() || node.domain() == "ai.onnx";
    if (!is_standard || node.output_size() != 1) continue;
    PlainNode& plain = search.nodes[node.output(0)];
    plain = {node.op_type(), {node.input().begin(), node.input().end()}, true};
    for (const onnx_format::AttributeProto& a : node.attribute()) {
      if (a.name() == "low") plain.is_unit &= a.f() == 0;
      if (a.name() == "high") plain.is_unit &= a.f() == 1;
      if (node.op_type() != "Constant") continue;
      if (a.name() == "value_float") search.scalars[node.output(0)] = a.f();
      if (a.name() == "value")
        if (const auto scalar = scalar_of(a.t())) search.scalars[node.output(0)] = *scalar;
    }
  }
  return search.run();
}

}  // namespace tilewright::onnx
