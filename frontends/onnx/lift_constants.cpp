#include "frontends/onnx/lift_constants.h"

#include <cstring>

namespace tilewright {

namespace {

void lift_nodes(OnnxGraph& graph) {
  std::erase_if(graph.nodes, [&](const OnnxNode& node) {
    const auto value = node.attributes.find("value");
    if (node.op_type != "Constant" || !node.domain.empty() || value == node.attributes.end() ||
        node.outputs.size() != 1)
      return false;
    const auto* tensor = std::get_if<TensorView>(&value->second);
    if (!tensor || !tensor->dtype() || !is_float(*tensor->dtype())) return false;
    return graph.initializers.emplace(node.outputs[0], *tensor).second;
  });
}

bool is_output(const OnnxGraph& graph, const std::string& name) {
  for (const OnnxValueInfo& o : graph.outputs)
    if (o.name == name) return true;
  return false;
}

// Exporters merge tensors that happen to be equal, as all scales and variances of a fresh network
// are, and write a copy for each of the others. PyTorch's does so with whole layers that were copied
// before they were trained, and gives what a network means to share one name; elsewhere a copy of
// elements that differ may be meant.
void separate_copies(OnnxModel& model) {
  OnnxGraph& graph = model.graph;
  const bool never_meant = model.producer.starts_with("pytorch");
  std::map<std::string, int> uses;
  for (const OnnxNode& node : graph.nodes)
    for (const std::string& in : node.inputs) ++uses[in];
  std::erase_if(graph.nodes, [&](const OnnxNode& node) {
    if (node.op_type != "Identity" || !node.domain.empty() || node.inputs.size() != 1 ||
        node.outputs.size() != 1 || uses[node.inputs[0]] < 2 || is_output(graph, node.outputs[0]))
      return false;
    const auto it = graph.initializers.find(node.inputs[0]);
    if (it == graph.initializers.end() || !(is_uniform(it->second) || never_meant)) return false;
    const TensorView copy = it->second;
    return graph.initializers.emplace(node.outputs[0], copy).second;
  });
}

}  // namespace

bool is_uniform(const TensorView& t) {
  const auto dtype = t.dtype();
  if (!dtype || !is_float(*dtype) || t.shape.empty() || t.bytes == 0) return false;
  const auto size = static_cast<size_t>(info(*dtype).bytes);
  return std::memcmp(t.data, t.data + size, t.bytes - size) == 0;
}

void lift_constants(OnnxModel& model) {
  lift_nodes(model.graph);
  separate_copies(model);
}

}  // namespace tilewright
