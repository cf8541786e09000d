// Which importer holds for which operator and opset.
#include <algorithm>
#include <map>
#include <set>

#include "frontends/onnx/importers.h"

namespace tilewright::onnx {

namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, std::vector<const OpMapping*>>& table() {
  static const auto* const rows = [] {
    auto* t = new std::map<Key, std::vector<const OpMapping*>>;
    for (auto family : {
             math_mappings(),         activation_mappings(),     nn_mappings(),
             reduction_mappings(),    shape_mappings(),          recurrent_mappings(),
             quantization_mappings(), normalization_mappings(),  attention_mappings(),
             einsum_mappings(),       signal_mappings(),         movement_mappings(),
             generator_mappings(),    conv_transpose_mappings(), vision_mappings(),
             selection_mappings(),    resize_mappings(),         random_mappings(),
             control_flow_mappings(), sequence_mappings(),
         })
      for (const OpMapping& m : family) (*t)[{m.domain, m.op_type}].push_back(&m);
    return t;
  }();
  return *rows;
}

}  // namespace

const OpMapping* find_mapping(const OnnxNode& node) {
  auto it = table().find({node.domain, node.op_type});
  if (it == table().end()) return nullptr;
  const OpMapping* best = nullptr;
  for (const OpMapping* m : it->second)
    if (m->since <= node.opset && (!best || m->since > best->since)) best = m;
  return best;
}

std::vector<std::string> mapped_ops() {
  std::vector<std::string> names;
  for (const auto& [key, rows] : table())
    names.push_back(key.first.empty() ? std::string(key.second)
                                      : std::string(key.first) + ":" + std::string(key.second));
  return names;
}

}  // namespace tilewright::onnx
