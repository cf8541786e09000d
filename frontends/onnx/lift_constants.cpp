#include "frontends/onnx/lift_constants.h"

namespace tilewright {

void lift_constants(OnnxModel& model) {
  OnnxGraph& graph = model.graph;
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

}  // namespace tilewright
