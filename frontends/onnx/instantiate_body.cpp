// A copy of a body by structural recursion, with a map from formal names to those of the copy.
#include "frontends/onnx/instantiate_body.h"

#include <memory>
#include <set>

namespace tilewright {
namespace {

using Names = std::map<std::string, std::string>;

// How much memory a copied attribute takes, by its elements.
constexpr auto element_total = [](const auto& value) -> size_t {
  if constexpr (requires { value.size(); }) return value.size();
  return 1;
};

class Instantiator {
 public:
  explicit Instantiator(Instance& instance) : instance_(instance) {}

  // In an inner graph, every output is a new value; in the body itself, formal outputs have a name
  // of the caller's already.
  enum class Level { kBody, kInner };

  std::vector<OnnxNode> copy_nodes(const std::vector<OnnxNode>& nodes, Names& names, Level level) {
    std::vector<OnnxNode> copies;
    copies.reserve(nodes.size());
    for (const OnnxNode& node : nodes) {
      OnnxNode copy{node.op_type, node.domain, node.overload, node.opset};
      copy.name = instance_.prefix + (node.name.empty() ? "" : "/" + node.name);
      for (const std::string& in : node.inputs)
        copy.inputs.push_back(in.empty() ? in : names.at(in));
      for (const auto& [name, value] : node.attributes) copy_attribute(name, value, names, copy);
      for (const std::string& out : node.outputs)
        copy.outputs.push_back(out.empty() ? out : define(out, names, level));
      copies.push_back(std::move(copy));
    }
    return copies;
  }

 private:
  // The new name of an output.
  std::string define(const std::string& name, Names& names, Level level) {
    auto [at, is_new] = names.try_emplace(name);
    if (is_new || level == Level::kInner) at->second = instance_.fresh_name(name);
    return at->second;
  }

  void copy_attribute(const std::string& name, const OnnxAttribute& value, const Names& names,
                      OnnxNode& copy) {
    if (auto* reference = std::get_if<OnnxAttributeReference>(&value)) {
      auto given = instance_.attributes.find(reference->attribute);
      if (given == instance_.attributes.end()) return;
      copy.attributes.emplace(name, given->second);
      instance_.weight += std::visit(element_total, given->second);
    } else if (auto* graph = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) {
      copy.attributes.emplace(name, copy_graph(**graph, names));
    } else if (auto* graphs = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value)) {
      std::vector<std::shared_ptr<OnnxGraph>> copies;
      for (const auto& g : *graphs) copies.push_back(copy_graph(*g, names));
      copy.attributes.emplace(name, std::move(copies));
    } else {
      copy.attributes.emplace(name, value);
      instance_.weight += std::visit(element_total, value);
    }
  }

  // `names` by value: what an inner graph defines hides outer names, and only there.
  std::shared_ptr<OnnxGraph> copy_graph(const OnnxGraph& graph, Names names) {
    auto copy = std::make_shared<OnnxGraph>();
    copy->name = graph.name;
    std::set<std::string> inputs;
    for (const OnnxValueInfo& v : graph.inputs) {
      inputs.insert(v.name);
      names[v.name] = instance_.fresh_name(v.name);
    }
    for (const auto& [name, tensor] : graph.initializers) {
      if (!inputs.contains(name)) names[name] = instance_.fresh_name(name);
      copy->initializers.emplace(names[name], tensor);
    }
    copy->nodes = copy_nodes(graph.nodes, names, Level::kInner);
    copy->inputs = rename(graph.inputs, names);
    copy->outputs = rename(graph.outputs, names);
    copy->value_info = rename(graph.value_info, names);
    return copy;
  }

  // Values that the copy does not define are left out: type information may speak of any name.
  static std::vector<OnnxValueInfo> rename(const std::vector<OnnxValueInfo>& values,
                                           const Names& names) {
    std::vector<OnnxValueInfo> renamed;
    for (const OnnxValueInfo& v : values)
      if (auto at = names.find(v.name); at != names.end()) renamed.push_back({at->second, v.type});
    return renamed;
  }

  Instance& instance_;
};

}  // namespace

std::vector<OnnxNode> instantiate_body(const std::vector<OnnxNode>& body, Instance& instance) {
  return Instantiator(instance).copy_nodes(body, instance.values, Instantiator::Level::kBody);
}

}  // namespace tilewright
