// Kahn's algorithm with the ready nodes in a set by their old place: of the nodes whose operands
// are there, the first in the file comes next. An order that is sorted already therefore stays as
// it is.
#include "frontends/onnx/sort_nodes.h"

#include <set>
#include <string>
#include <unordered_map>

namespace tilewright {

namespace {

// Calls f(graph) for each graph in the node's attributes.
template <typename F>
void for_each_graph(OnnxNode& node, F&& f) {
  for (auto& [name, value] : node.attributes) {
    if (auto* g = std::get_if<std::shared_ptr<OnnxGraph>>(&value); g && *g) f(**g);
    if (auto* many = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
      for (auto& g : *many)
        if (g) f(*g);
  }
}

// Names that a node reads, those its graphs read included.
void names_read(OnnxNode& node, std::set<std::string>& names) {
  for (const std::string& in : node.inputs)
    if (!in.empty()) names.insert(in);
  for_each_graph(node, [&](OnnxGraph& g) {
    for (OnnxNode& inner : g.nodes) names_read(inner, names);
    for (const OnnxValueInfo& out : g.outputs) names.insert(out.name);
  });
}

}  // namespace

void sort_nodes(OnnxGraph& graph) {
  for (OnnxNode& n : graph.nodes) for_each_graph(n, [](OnnxGraph& g) { sort_nodes(g); });
  std::unordered_map<std::string, size_t> maker;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& out : graph.nodes[i].outputs)
      if (!out.empty()) maker.emplace(out, i);
  std::set<std::string> given;  // not made by a node, whatever else has that name
  for (const OnnxValueInfo& v : graph.inputs) given.insert(v.name);
  for (const auto& [name, tensor] : graph.initializers) given.insert(name);
  std::vector<std::vector<size_t>> readers(graph.nodes.size());
  std::vector<size_t> missing(graph.nodes.size());
  bool sorted = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::set<std::string> names;
    names_read(graph.nodes[i], names);
    for (const std::string& name : names) {
      auto m = maker.find(name);
      if (m == maker.end() || given.count(name)) continue;
      readers[m->second].push_back(i);
      ++missing[i];
      sorted &= m->second < i;
    }
  }
  if (sorted) return;
  std::set<size_t> ready;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (missing[i] == 0) ready.insert(i);
  std::vector<OnnxNode> order;
  std::vector<bool> placed(graph.nodes.size());
  while (!ready.empty()) {
    const size_t i = *ready.begin();
    ready.erase(ready.begin());
    placed[i] = true;
    order.push_back(std::move(graph.nodes[i]));
    for (size_t r : readers[i])
      if (--missing[r] == 0) ready.insert(r);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!placed[i]) order.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(order);
}

}  // namespace tilewright
