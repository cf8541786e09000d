#include "frontends/onnx/lift_constants.h"

#include <algorithm>
#include <cstring>

#include "frontends/onnx/export_metadata.h"

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
    if (!graph.initializers.emplace(node.outputs[0], *tensor).second) return false;
    graph.constant_nodes.insert(node.outputs[0]);
    return true;
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
    if (!graph.initializers.emplace(node.outputs[0], copy).second) return false;
    if (const auto role = graph.roles.find(node.inputs[0]); role != graph.roles.end())
      graph.roles.emplace(node.outputs[0], ExportedRole(role->second));
    return true;
  });
}

bool is_transpose(const TensorView& a, const TensorView& b) {
  const int64_t rows = a.shape[0], columns = a.shape[1];
  const auto size = static_cast<size_t>(info(*a.dtype()).bytes);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k)
      if (std::memcmp(a.data + static_cast<size_t>(i * columns + k) * size,
                      b.data + static_cast<size_t>(k * rows + i) * size, size) != 0)
        return false;
  return true;
}

// What the exporter computed, and of what: by its metadata where there are some, else by its names and by elements.
class Folded {
 public:
  explicit Folded(const OnnxModel& model) : has_metadata_(!model.graph.roles.empty()) {
    if (has_metadata_ && !model.sources.empty()) sources_ = folded_sources(model.sources[0].bytes);
  }
  bool is_made(const std::string& name) const {
    return sources_.count(name) || name.starts_with(has_metadata_ ? kOwnName : "onnx::");
  }
  bool may_be_of(const std::string& made, const std::string& other) const {
    const auto it = sources_.find(made);
    if (it == sources_.end()) return true;
    const std::vector<std::string>& of = it->second;
    return std::find(of.begin(), of.end(), other) != of.end() ||
           std::all_of(of.begin(), of.end(), [](auto& s) { return s.starts_with(kOwnName); });
  }

 private:
  static constexpr const char* kOwnName = "val_";
  bool has_metadata_;
  std::map<std::string, std::vector<std::string>> sources_;
};

// Ties a weight to the transposed copy that PyTorch's exporters fold from it, as for an output layer that shares the
// weight of an embedding; otherwise the two would be trained separately. The exporter's metadata,
// where there are any, tell such a copy from two weights that are transposes of each other only at the start.
void share_transposed_copies(OnnxModel& model) {
  if (!model.producer.starts_with("pytorch")) return;
  OnnxGraph& graph = model.graph;
  std::map<Shape, std::vector<std::string>> by_shape;
  for (const auto& [name, t] : graph.initializers)
    if (t.shape.size() == 2 && t.dtype() && is_float(*t.dtype()) && !is_uniform(t) && t.bytes > 0)
      by_shape[t.shape].push_back(name);
  const Folded folded(model);
  std::vector<OnnxNode> nodes;
  for (const auto& [shape, names] : by_shape)
    for (const std::string& copy : names) {
      const auto others = by_shape.find({shape[1], shape[0]});
      if (others == by_shape.end() || !folded.is_made(copy)) continue;
      const auto of =
          std::find_if(others->second.begin(), others->second.end(), [&](const std::string& other) {
            const TensorView &a = graph.initializers.at(copy), &b = graph.initializers.at(other);
            return !folded.is_made(other) && folded.may_be_of(copy, other) &&
                   a.onnx_code == b.onnx_code && is_transpose(a, b);
          });
      if (of == others->second.end()) continue;
      graph.transposed_copies[copy] = *of;
      OnnxNode node{.op_type = "Transpose", .opset = model.opset_imports[""], .name = copy};
      node.inputs = {*of};
      node.outputs = {copy};
      node.attributes["perm"] = std::vector<int64_t>{1, 0};
      nodes.push_back(std::move(node));
    }
  for (const auto& [copy, of] : graph.transposed_copies) graph.initializers.erase(copy);
  std::erase_if(graph.inputs, [&](const OnnxValueInfo& input) {  // one that is an initialiser, too
    return graph.transposed_copies.count(input.name) != 0;
  });
  graph.nodes.insert(graph.nodes.begin(), nodes.begin(), nodes.end());
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
  share_transposed_copies(model);
}

}  // namespace tilewright
