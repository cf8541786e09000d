#include "frontends/train/initializer_uses.h"

#include <algorithm>

namespace tilewright::train {

namespace {

constexpr struct {
  std::string_view op;
  size_t operand;
} kSettingOperands[] = {{"Clip", 1},
                        {"Clip", 2},
                        {"Dropout", 1},
                        {"Pad", 2},
                        {"Pow", 1},
                        {"Resize", 1},
                        {"Resize", 2},
                        {"Upsample", 1},
                        {"QuantizeLinear", 1},
                        {"OneHot", 2},
                        {"DequantizeLinear", 1}};
constexpr std::string_view kNormalizations[] = {"BatchNormalization", "GroupNormalization",
                                                "InstanceNormalization", "LayerNormalization",
                                                "RMSNormalization"};

bool is_setting(const OnnxNode& node, size_t operand) {
  return std::any_of(std::begin(kSettingOperands), std::end(kSettingOperands),
                     [&](const auto& s) { return s.op == node.op_type && s.operand == operand; });
}
bool is_statistic(const OnnxNode& node, size_t operand) {
  return node.op_type == "BatchNormalization" && node.domain.empty() && operand >= 3;
}
bool is_of_normalization(const OnnxNode& node, size_t operand) {
  return (operand == 1 || operand == 2) && node.domain.empty() &&
         std::find(std::begin(kNormalizations), std::end(kNormalizations), node.op_type) !=
             std::end(kNormalizations);
}

}  // namespace

InitializerUses::InitializerUses(const OnnxGraph& graph) {
  std::map<std::string, std::string> copies;  // of initialisers
  for (const OnnxNode& node : graph.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const auto copied = copies.find(node.inputs[k]);
      const std::string& name = copied == copies.end() ? node.inputs[k] : copied->second;
      if (!graph.initializers.count(name)) continue;
      if (node.op_type == "Identity" && node.domain.empty() && !node.outputs.empty())
        copies[node.outputs[0]] = std::string(name);
      else
        uses_[name].push_back({&node, k});
    }
}

std::set<std::string> InitializerUses::used_as(bool (*role)(const OnnxNode&, size_t)) const {
  std::set<std::string> found;
  for (const auto& [name, uses] : uses_)
    for (const Use& use : uses)
      if (role(*use.node, use.operand)) found.insert(name);
  return found;
}
std::set<std::string> InitializerUses::statistics() const { return used_as(is_statistic); }
std::set<std::string> InitializerUses::settings(bool with_exponents) const {
  return used_as(with_exponents ? is_setting : [](const OnnxNode& node, size_t operand) {
    return node.op_type != "Pow" && is_setting(node, operand);
  });
}

std::vector<const OnnxNode*> InitializerUses::normalizations(const std::string& name) const {
  std::vector<const OnnxNode*> found;
  if (const auto it = uses_.find(name); it != uses_.end())
    for (const Use& use : it->second)
      if (is_of_normalization(*use.node, use.operand)) found.push_back(use.node);
  return found;
}

}  // namespace tilewright::train
