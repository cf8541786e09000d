// The signature of the exported program has a line for each of its inputs, `p_fc_weight: PARAMETER target='fc.weight'`;
// a node has the call that it was made of, `call_function[...](args = (%x, %p_fc_weight, %p_fc_bias), ...)`.
#include "frontends/onnx/export_metadata.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "frontends/onnx/strip_payloads.h"

namespace tilewright {

namespace {

using onnx_format::GraphProto;
using onnx_format::NodeProto;

constexpr const char *kSignature = "pkg.torch.export.ExportedProgram.graph_signature",
                     *kKind = "pkg.torch.export.graph_signature.InputSpec.kind",
                     *kFoldedFrom = "pkg.onnxscript.optimizer.folded_from",
                     *kCall = "pkg.torch.onnx.fx_node";

template <typename Message>
std::string_view metadata(const Message& of, std::string_view key) {
  for (const auto& entry : of.metadata_props())
    if (entry.key() == key) return entry.value();
  return {};
}

std::optional<ExportedRole> role_of_kind(std::string_view kind) {
  if (kind.ends_with("PARAMETER")) return ExportedRole::kParameter;
  if (kind.ends_with("BUFFER")) return ExportedRole::kBuffer;
  if (kind.ends_with("CONSTANT_TENSOR")) return ExportedRole::kConstant;
  return std::nullopt;
}

// A tensor of the network: what calls call it, and its name there.
struct Tensor {
  std::string target;
  ExportedRole role;
};
using Signature = std::map<std::string, Tensor, std::less<>>;

Signature read_signature(std::string_view text) {
  Signature all;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    constexpr std::string_view kTarget = " target='";
    const size_t colon = line.find(": "), target = line.find(kTarget);
    if (colon == line.npos || target == line.npos || target < colon + 2) continue;
    const auto role = role_of_kind(line.substr(colon + 2, target - colon - 2));
    const size_t from = target + kTarget.size(), to = line.find('\'', from);
    if (role && to != line.npos)
      all[std::string(line.substr(0, colon))] = {std::string(line.substr(from, to - from)), *role};
  }
  return all;
}

// "['a', 'b']"
std::vector<std::string> quoted_names(std::string_view list) {
  std::vector<std::string> names;
  for (size_t at = 0; (at = list.find('\'', at)) != list.npos;) {
    const size_t end = list.find('\'', at + 1);
    if (end == list.npos) break;
    names.emplace_back(list.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names;
}

// Tensors of the network among the arguments of a call, in their order.
std::vector<const Tensor*> arguments(std::string_view call, const Signature& signature) {
  std::vector<const Tensor*> found;
  for (size_t at = call.find("args = ");
       at < call.size() && (at = call.find('%', at)) != call.npos;) {
    const size_t from = ++at;
    while (at < call.size() &&
           (std::isalnum(static_cast<unsigned char>(call[at])) || call[at] == '_'))
      ++at;
    if (const auto it = signature.find(call.substr(from, at - from)); it != signature.end())
      found.push_back(&it->second);
  }
  return found;
}

std::string_view leaf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

class Separate {
 public:
  Separate(GraphProto& graph, Signature signature)
      : graph_(graph), signature_(std::move(signature)) {
    std::set<std::string> targets, there;
    for (const auto& [placeholder, tensor] : signature_) targets.insert(tensor.target);
    for (int i = 0; i < graph.initializer_size(); ++i) {
      const std::string& name = graph.initializer(i).name();
      by_name_[name] = i;
      if (targets.count(name)) stands_for_[name].insert(name);
    }
    for (const auto& value : graph.value_info())
      for (const std::string& name : quoted_names(metadata(value, kFoldedFrom)))
        if (by_name_.count(value.name()) && targets.count(name))
          stands_for_[value.name()].insert(name);
    for (const auto& [name, of] : stands_for_) there.insert(of.begin(), of.end());
    std::set_difference(targets.begin(), targets.end(), there.begin(), there.end(),
                        std::inserter(missing_, missing_.end()));
  }
  std::vector<std::string> run() {
    if (missing_.empty()) return {};
    std::map<std::string, int> uses;
    for (const NodeProto& node : graph_.node())
      for (const std::string& in : node.input()) ++uses[in];
    for (const auto& [name, i] : by_name_)
      if (uses[name] < 2) stands_for_.erase(name);  // it is merged with no other
    for (NodeProto& node : *graph_.mutable_node())
      separate(node, arguments(metadata(node, kCall), signature_));
    return std::move(added_);
  }

 private:
  bool is_missing(const Tensor* t) const { return missing_.count(t->target) != 0; }

  void separate(NodeProto& node, const std::vector<const Tensor*>& read) {
    if (std::none_of(read.begin(), read.end(), [&](const Tensor* t) { return is_missing(t); }))
      return;
    std::vector<int> operands;  // that are tensors of the network
    for (int i = 0; i < node.input_size(); ++i)
      if (stands_for_.count(node.input(i))) operands.push_back(i);
    if (stand_in_order(node, operands, read)) {
      for (size_t k = 0; k < operands.size(); ++k)
        if (is_missing(read[k])) put(node, operands[k], read[k]->target);
      return;
    }
    for (const int i : operands)
      if (const Tensor* t = only_candidate(node.input(i), read)) put(node, i, t->target);
  }
  // Are they what the call reads, one by one? Not if names say that another operand is meant, which is of another rank
  // or for its part means this one: torch.addmm(bias, x, weight) is Gemm(x, weight, bias).
  bool stand_in_order(const NodeProto& node, const std::vector<int>& operands,
                      const std::vector<const Tensor*>& read) const {
    if (operands.size() != read.size()) return false;
    for (size_t k = 0; k < read.size(); ++k)
      if (!is_missing(read[k]) && node.input(operands[k]) != read[k]->target) return false;
    const auto alike = [&](size_t operand, size_t k) {
      return is_alike(node.input(operands[operand]), read[k]);
    };
    const auto rank = [&](size_t k) {
      return graph_.initializer(by_name_.at(node.input(operands[k]))).dims_size();
    };
    for (size_t k = 0; k < read.size(); ++k)
      for (size_t j = 0; j < read.size(); ++j)
        if (!alike(k, k) && alike(j, k) && (rank(j) != rank(k) || (!alike(j, j) && alike(k, j))))
          return false;
    return true;
  }
  // Does the operand stand for a tensor that other parts of the network call the same?
  bool is_alike(const std::string& operand, const Tensor* t) const {
    const std::set<std::string>& of = stands_for_.at(operand);
    return std::any_of(of.begin(), of.end(),
                       [&](const std::string& o) { return leaf(o) == leaf(t->target); });
  }
  // What the operand stands for, which is not itself among what the call reads; null: that is not clear.
  const Tensor* only_candidate(const std::string& operand,
                               const std::vector<const Tensor*>& read) const {
    const std::set<std::string>& of = stands_for_.at(operand);
    std::vector<const Tensor*> all, alike;
    for (const Tensor* t : read) {
      if (of.count(t->target)) return nullptr;
      if (!is_missing(t)) continue;
      all.push_back(t);
      if (is_alike(operand, t)) alike.push_back(t);
    }
    return all.size() == 1 ? all[0] : alike.size() == 1 ? alike[0] : nullptr;
  }
  void put(NodeProto& node, int operand, const std::string& target) {
    const onnx_format::TensorProto& merged = graph_.initializer(by_name_.at(node.input(operand)));
    const auto [it, is_new] = by_name_.emplace(target, graph_.initializer_size());
    if (is_new) {
      onnx_format::TensorProto copy = merged;
      copy.set_name(target);
      *graph_.add_initializer() = std::move(copy);
      added_.push_back(target);
    } else if (!std::equal(merged.dims().begin(), merged.dims().end(),
                           graph_.initializer(it->second).dims().begin(),
                           graph_.initializer(it->second).dims().end())) {
      return;
    }
    node.set_input(operand, target);
  }

  GraphProto& graph_;
  const Signature signature_;
  std::map<std::string, int> by_name_;  // initialisers
  // Of the signature: what initialisers are or were folded from, and what none is.
  std::map<std::string, std::set<std::string>> stands_for_;
  std::set<std::string> missing_;
  std::vector<std::string> added_;
};

}  // namespace

std::map<std::string, ExportedRole> exported_roles(const GraphProto& graph) {
  std::map<std::string, ExportedRole> by_target, roles;
  for (const auto& [placeholder, t] : read_signature(metadata(graph, kSignature)))
    by_target.emplace(t.target, t.role);
  std::map<std::string, std::vector<std::string>> folded;
  for (const auto& value : graph.value_info()) {
    if (const auto role = role_of_kind(metadata(value, kKind))) by_target[value.name()] = *role;
    if (const auto from = metadata(value, kFoldedFrom); !from.empty())
      folded[value.name()] = quoted_names(from);
  }
  if (by_target.empty()) return {};
  for (const auto& initializer : graph.initializer()) {
    const std::string& name = initializer.name();
    const auto it = by_target.find(name);
    ExportedRole role = it == by_target.end() ? ExportedRole::kConstant : it->second;
    if (const auto from = folded.find(name); it == by_target.end() && from != folded.end())
      for (const std::string& source : from->second)
        if (const auto s = by_target.find(source); s != by_target.end())
          role = std::min(role, s->second);  // a parameter before a buffer
    roles[name] = role;
  }
  return roles;
}

std::map<std::string, std::vector<std::string>> folded_sources(std::span<const uint8_t> file) {
  std::map<std::string, std::vector<std::string>> sources;
  const Result<std::string> structure = strip_payloads(file, true);
  onnx_format::ModelProto model;
  if (!structure || !model.ParseFromString(*structure)) return sources;
  for (const auto& value : model.graph().value_info())
    if (const auto from = metadata(value, kFoldedFrom); !from.empty())
      sources[value.name()] = quoted_names(from);
  return sources;
}

std::vector<std::string> separate_merged(GraphProto& graph) {
  Signature signature = read_signature(metadata(graph, kSignature));
  return signature.empty() ? std::vector<std::string>{}
                           : Separate(graph, std::move(signature)).run();
}

}  // namespace tilewright
