// Inline expansion with renaming: a call is replaced by a copy of the body in which formal names
// stand for the caller's (alpha conversion keeps the others apart), and the copy is expanded in
// turn. Depth first, so that `active_` is the stack of calls around the node at hand, which is how
// recursion is found.
#include "frontends/onnx/inline_functions.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "frontends/onnx/check_model.h"
#include "frontends/onnx/instantiate_body.h"

namespace tilewright {
namespace {

// Elements of attributes in all copies of bodies; a bound on memory, as kMaxInlinedNodes is.
constexpr size_t kMaxCopiedElements = 100'000'000;

class Inliner {
 public:
  explicit Inliner(const OnnxModel& model) {
    auto standard = model.opset_imports.find("");
    if (standard != model.opset_imports.end()) standard_opset_ = standard->second;
    for (const OnnxFunction& f : model.functions)
      functions_.emplace(function_key(f.domain, f.name, f.overload), &f);
    collect_names(model.graph);
  }

  Status expand_graph(OnnxGraph& graph) {
    std::vector<OnnxNode> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    return expand_nodes(std::move(nodes), graph.nodes);
  }

 private:
  // Appends the nodes to `out`, calls replaced by bodies. Nested graphs are expanded in place.
  Status expand_nodes(std::vector<OnnxNode> nodes, std::vector<OnnxNode>& out) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      OnnxNode& node = nodes[i];
      for (auto& [name, value] : node.attributes) TW_RETURN_IF_ERROR(expand_attribute(value));
      auto at = functions_.find(function_key(node.domain, node.op_type, node.overload));
      if (at == functions_.end()) {
        out.push_back(std::move(node));
      } else if (auto status = expand_call(*at->second, node, out); !status) {
        if (status.error().location.empty()) status.error().location = describe_node(node, i);
        return status;
      }
    }
    return {};
  }

  Status expand_attribute(OnnxAttribute& value) {
    if (auto* graph = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) return expand_graph(**graph);
    if (auto* graphs = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
      for (auto& g : *graphs) TW_RETURN_IF_ERROR(expand_graph(*g));
    return {};
  }

  // One call. The limits are checked before the body is descended into: a chain of functions that
  // each call the next one twice has 2^n nodes.
  Status expand_call(const OnnxFunction& f, const OnnxNode& call, std::vector<OnnxNode>& out) {
    TW_RETURN_IF_ERROR(check_call(f, call));
    Instance instance;
    instance.prefix = call.name.empty() ? f.name : call.name;
    instance.fresh_name = [this, prefix = instance.prefix](const std::string& value) {
      return fresh_name(prefix + "/" + value);
    };
    TW_RETURN_IF_ERROR(bind_attributes(f, call, instance));
    for (size_t i = 0; i < f.inputs.size(); ++i)
      instance.values[f.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    TW_ASSIGN(std::vector<OnnxNode> copies, bind_outputs(f, call, instance));
    std::vector<OnnxNode> body = instantiate_body(f.nodes, instance);
    body.insert(body.end(), std::make_move_iterator(copies.begin()),
                std::make_move_iterator(copies.end()));
    nodes_ += body.size();
    copied_elements_ += instance.weight;
    if (nodes_ > kMaxInlinedNodes || copied_elements_ > kMaxCopiedElements)
      return limit_error("the functions of the model expand to more than " +
                         std::to_string(kMaxInlinedNodes) + " nodes");
    active_.push_back(&f);
    TW_RETURN_IF_ERROR(expand_nodes(std::move(body), out));
    active_.pop_back();
    return {};
  }

  Status check_call(const OnnxFunction& f, const OnnxNode& call) {
    if (std::find(active_.begin(), active_.end(), &f) != active_.end())
      return invalid("function " + quote(f.name) + " calls itself");
    if (active_.size() == kMaxCallDepth)
      return limit_error("functions call each other more than " + std::to_string(kMaxCallDepth) +
                         " deep");
    if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size())
      return invalid("function " + quote(f.name) + " has " + std::to_string(f.inputs.size()) +
                     " inputs and " + std::to_string(f.outputs.size()) + " outputs, the call has " +
                     std::to_string(call.inputs.size()) + " and " +
                     std::to_string(call.outputs.size()));
    return {};
  }

  // Defaults of the function first, then what the call gives.
  Status bind_attributes(const OnnxFunction& f, const OnnxNode& call, Instance& instance) {
    instance.attributes = f.defaults;
    for (const auto& [name, value] : call.attributes) {
      bool known = f.defaults.contains(name) ||
                   std::find(f.attributes.begin(), f.attributes.end(), name) != f.attributes.end();
      if (!known) return invalid("function " + quote(f.name) + " has no attribute " + quote(name));
      instance.attributes[name] = value;
    }
    return {};
  }

  // Gives formal outputs the caller's names. An output that is an input as well, or stands twice in
  // the list, needs a copy: the nodes that are returned.
  Result<std::vector<OnnxNode>> bind_outputs(const OnnxFunction& f, const OnnxNode& call,
                                             Instance& instance) {
    std::vector<OnnxNode> copies;
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      const std::string& formal = f.outputs[i];
      std::string actual = i < call.outputs.size() ? call.outputs[i] : "";
      auto bound = instance.values.find(formal);
      if (bound == instance.values.end()) {
        instance.values[formal] = actual.empty() ? instance.fresh_name(formal) : actual;
      } else if (!actual.empty()) {
        if (bound->second.empty())
          return invalid("output " + quote(actual) + " is input " + quote(formal) +
                         " of the function, which the call leaves out");
        OnnxNode copy{"Identity", "", "", standard_opset_};
        copy.name = instance.prefix + "/copy";
        copy.inputs = {bound->second};
        copy.outputs = {actual};
        copies.push_back(std::move(copy));
      }
    }
    return copies;
  }

  // A name that no value of the model has yet; by counting up from the last number tried, since
  // bodies are copied by the thousand.
  std::string fresh_name(const std::string& wanted) {
    std::string name = wanted;
    size_t& next = next_number_[wanted];
    while (!names_.insert(name).second) name = wanted + "_" + std::to_string(++next + 1);
    return name;
  }

  // Inner graphs too: a new name must not hide one that they see.
  void collect_names(const OnnxGraph& graph) {
    for (const OnnxValueInfo& v : graph.inputs) names_.insert(v.name);
    for (const auto& [name, tensor] : graph.initializers) names_.insert(name);
    for (const OnnxNode& node : graph.nodes) {
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const auto& [name, value] : node.attributes) {
        if (auto* inner = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) collect_names(**inner);
        if (auto* inners = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
          for (const auto& g : *inners) collect_names(*g);
      }
    }
  }

  int64_t standard_opset_ = 1;
  std::map<std::string, const OnnxFunction*> functions_;
  std::vector<const OnnxFunction*> active_;  // the calls around the current node
  std::unordered_set<std::string> names_;    // of all values
  std::unordered_map<std::string, size_t> next_number_;
  size_t nodes_ = 0;
  size_t copied_elements_ = 0;
};

}  // namespace

Status inline_functions(OnnxModel& model) {
  if (model.functions.empty()) return {};
  TW_RETURN_IF_ERROR(Inliner(model).expand_graph(model.graph));
  model.functions.clear();
  // A left out input can end where a value is needed, such as the output of an inner graph.
  return check_model(model);
}

}  // namespace tilewright
