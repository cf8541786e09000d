// One walk over graphs and functions with the scopes around; the search that tells a cycle from a
// wrong order runs only for the message, once a name is missing.
#include "frontends/onnx/check_model.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tilewright {
namespace {

// The names defined so far in one graph, and where to look for others. Views into the model, which
// is not changed meanwhile.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_set<std::string_view> names;

  bool sees(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (s->names.contains(name)) return true;
    return false;
  }
};

using Producers = std::unordered_map<std::string_view, size_t>;  // value -> node of the same graph

// Does the value come, through nodes of this graph, from the node itself?
bool depends_on(std::string_view value, size_t node, const std::vector<OnnxNode>& nodes,
                const Producers& producers) {
  std::vector<std::string_view> pending{value};
  std::vector<bool> seen(nodes.size(), false);
  while (!pending.empty()) {
    auto at = producers.find(pending.back());
    pending.pop_back();
    if (at == producers.end() || seen[at->second]) continue;
    if (at->second == node) return true;
    seen[at->second] = true;
    for (const std::string& in : nodes[at->second].inputs) pending.push_back(in);
  }
  return false;
}

// Which of three mistakes it is: no such value, a cycle, or nodes in a wrong order.
Error undefined_input(const std::string& input, size_t index, const std::vector<OnnxNode>& nodes) {
  Producers producers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& out : nodes[i].outputs) producers.emplace(out, i);
  std::string what = describe_node(nodes[index], index);
  auto maker = producers.find(input);
  if (maker == producers.end()) return invalid("input " + quote(input) + " is not defined", what);
  if (depends_on(input, index, nodes, producers))
    return invalid("input " + quote(input) + " depends on the node's own output: a cycle", what);
  return invalid("input " + quote(input) + " is made only later, by " +
                     describe_node(nodes[maker->second], maker->second) +
                     ": nodes must be in topological order",
                 what);
}

// What the default of a function's attribute may not be.
bool is_graph_or_reference(const OnnxAttribute& value) {
  return std::holds_alternative<std::shared_ptr<OnnxGraph>>(value) ||
         std::holds_alternative<std::vector<std::shared_ptr<OnnxGraph>>>(value) ||
         std::holds_alternative<OnnxAttributeReference>(value);
}

class Checker {
 public:
  explicit Checker(const OnnxModel& model) : model_(model) {}

  Status check() {
    for (const OnnxFunction& f : model_.functions)
      if (!functions_.insert(function_key(f.domain, f.name, f.overload)).second)
        return invalid("function " + quote(f.name) + " is given twice");
    TW_RETURN_IF_ERROR(check_graph(model_.graph, nullptr));
    for (const OnnxFunction& f : model_.functions) {
      function_ = &f;
      if (auto status = check_function(f); !status) {
        Error& error = status.error();
        error.location =
            "function " + quote(f.name) + (error.location.empty() ? "" : ", " + error.location);
        return status;
      }
    }
    return {};
  }

 private:
  Status define(Scope& scope, const std::string& name, const std::string& what) {
    if (name.empty()) return invalid(what + " has no name");
    if (!scope.names.insert(name).second)
      return invalid(what + " " + quote(name) + ": the name is defined twice");
    return {};
  }

  Status check_graph(const OnnxGraph& graph, const Scope* outer) {
    Scope scope{outer};
    for (const OnnxValueInfo& v : graph.inputs)
      TW_RETURN_IF_ERROR(define(scope, v.name, "graph input"));
    for (const auto& [name, tensor] : graph.initializers) scope.names.insert(name);
    TW_RETURN_IF_ERROR(check_nodes(graph.nodes, scope));
    for (const OnnxValueInfo& v : graph.outputs) {
      if (v.name.empty()) return invalid("graph output without a name");
      if (!scope.sees(v.name)) return invalid("graph output " + quote(v.name) + " is not defined");
    }
    return {};
  }

  Status check_function(const OnnxFunction& f) {
    if (f.name.empty()) return invalid("function without a name");
    for (const auto& [name, value] : f.defaults)
      if (is_graph_or_reference(value))
        return unsupported("the default of attribute " + quote(name) +
                           " is a graph or a reference");
    Scope scope;
    for (const std::string& name : f.inputs)
      TW_RETURN_IF_ERROR(define(scope, name, "function input"));
    TW_RETURN_IF_ERROR(check_nodes(f.nodes, scope));
    for (const std::string& name : f.outputs)
      if (!scope.sees(name)) return invalid("function output " + quote(name) + " is not defined");
    return {};
  }

  Status check_nodes(const std::vector<OnnxNode>& nodes, Scope& scope) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const std::string& in : nodes[i].inputs)
        if (!in.empty() && !scope.sees(in)) return undefined_input(in, i, nodes);
      TW_RETURN_IF_ERROR(check_operator(nodes[i], i));
      for (const auto& [name, value] : nodes[i].attributes)
        TW_RETURN_IF_ERROR(check_attribute(name, value, nodes[i], i, scope));
      for (const std::string& out : nodes[i].outputs)
        if (!out.empty()) TW_RETURN_IF_ERROR(define(scope, out, describe_node(nodes[i], i)));
    }
    return {};
  }

  // A node has no opset when its domain is not imported; then it must call a function.
  Status check_operator(const OnnxNode& node, size_t index) {
    if (node.opset != 0) return {};
    if (functions_.contains(function_key(node.domain, node.op_type, node.overload))) return {};
    return invalid("domain " + quote(node.domain) + " is not imported", describe_node(node, index));
  }

  Status check_attribute(const std::string& name, const OnnxAttribute& value, const OnnxNode& node,
                         size_t index, const Scope& scope) {
    if (auto* graph = std::get_if<std::shared_ptr<OnnxGraph>>(&value))
      return inside(check_graph(**graph, &scope), name, node, index);
    if (auto* graphs = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
      for (const auto& g : *graphs)
        TW_RETURN_IF_ERROR(inside(check_graph(*g, &scope), name, node, index));
    if (auto* reference = std::get_if<OnnxAttributeReference>(&value))
      if (!is_own_attribute(reference->attribute))
        return invalid("attribute " + quote(name) + " refers to " + quote(reference->attribute) +
                           ", which is no attribute of a function around it",
                       describe_node(node, index));
    return {};
  }

  Status inside(Status status, const std::string& attribute, const OnnxNode& node, size_t index) {
    if (status.ok()) return status;
    std::string& location = status.error().location;
    location = describe_node(node, index) + ", graph " + quote(attribute) +
               (location.empty() ? "" : ", " + location);
    return status;
  }

  bool is_own_attribute(const std::string& name) const {
    if (!function_) return false;
    return function_->defaults.contains(name) ||
           std::find(function_->attributes.begin(), function_->attributes.end(), name) !=
               function_->attributes.end();
  }

  const OnnxModel& model_;
  const OnnxFunction* function_ = nullptr;  // whose body is being checked
  std::set<std::string> functions_;
};

}  // namespace

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return domain + ":" + name + (overload.empty() ? "" : ":" + overload);
}

Status check_model(const OnnxModel& model) { return Checker(model).check(); }

}  // namespace tilewright
