// Dead code elimination and common subexpression elimination over the graph, by value numbers:
// operator, operands and attributes, and the contents of small constants. Random operators are
// functions of their key operands, so equal ones are equal.
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "ir/graph/op.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Puts another value in the place of one, in all operands and outputs.
void apply_replacements(Graph& graph, std::vector<ValueId>& replacement) {
  auto find = [&](ValueId v) {
    while (v != kNone && replacement[static_cast<size_t>(v)] != v)
      v = replacement[static_cast<size_t>(v)];
    return v;
  };
  for (Node& n : graph.nodes)
    for (ValueId& v : n.inputs) v = find(v);
  for (ValueId& v : graph.outputs) v = find(v);
}
std::vector<ValueId> identity_map(const Graph& graph) {
  std::vector<ValueId> m(graph.values.size());
  for (size_t i = 0; i < m.size(); ++i) m[i] = static_cast<ValueId>(i);
  return m;
}
// Small ones, as shapes and numbers are: by their bytes.
void replace_common_constants(const Graph& graph, std::vector<ValueId>& replacement) {
  constexpr size_t kMostBytes = 256;
  std::map<std::tuple<DType, Shape, std::string_view>, ValueId> seen;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ConstantRef& c = graph.values[v].constant;
    if (!c || c->bytes > kMostBytes) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(c->data), c->bytes);
    replacement[v] = seen.try_emplace({c->dtype, c->shape, bytes}, replacement[v]).first->second;
  }
}
bool same_type(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (!same_expr(a.dims[d], b.dims[d])) return false;
  return true;
}
bool is_copy(const Graph& graph, const Node& n) {
  return n.op->retypes && same_type(graph.value(n.inputs[0]).type, graph.value(n.outputs[0]).type);
}

// Symbols that nodes still need, though nobody may read the values of the node that defines them.
class NamedSymbols {
 public:
  // What the types of the node's results, its attributes and its regions name.
  void note(const Graph& graph, const Node& n) {
    for (ValueId v : n.outputs)
      if (v != kNone) note(graph.value(v).type.dims);
    for (const auto& [name, attribute] : n.attributes)
      if (const auto* extents = std::get_if<Extents>(&attribute)) note(extents->dims);
    for (const auto& region : n.regions) {
      for (ValueId v : region->inputs) note(region->value(v).type.dims);
      for (const Node& inner : region->nodes) note(*region, inner);
    }
  }
  // What the run is required to check.
  void note(const std::vector<Requirement>& requirements) {
    for (const Requirement& r : requirements) note(std::vector<Expr>{r.a, r.b});
  }
  bool defines_one(const Node& n) const {
    for (const Var& v : n.defined_symbols)
      if (named_.count(v.get())) return true;
    return false;
  }

 private:
  void note(const std::vector<Expr>& dims) {
    for (const Expr& d : dims)
      for (const Var& v : free_vars_in_order(d)) named_.insert(v.get());
  }
  std::set<const ExprNode*> named_;
};

}  // namespace

Graph compact(Graph graph) {
  std::vector<bool> used(graph.values.size());
  auto mark = [&](ValueId v) {
    if (v != kNone) used[static_cast<size_t>(v)] = true;
  };
  for (const Node& n : graph.nodes) {
    for (ValueId v : n.inputs) mark(v);
    for (ValueId v : n.outputs) mark(v);
  }
  for (ValueId v : graph.inputs) mark(v);
  for (ValueId v : graph.outputs) mark(v);
  std::vector<ValueId> renumbered(graph.values.size(), kNone);
  std::vector<Value> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
    values.back().producer = -1;
  }
  graph.values = std::move(values);
  auto map = [&](ValueId& v) {
    if (v != kNone) v = renumbered[static_cast<size_t>(v)];
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId& v : graph.nodes[i].inputs) map(v);
    for (ValueId& v : graph.nodes[i].outputs) {
      map(v);
      if (v != kNone) graph.value(v).producer = static_cast<int32_t>(i);
    }
  }
  for (ValueId& v : graph.inputs) map(v);
  for (ValueId& v : graph.outputs) map(v);
  return graph;
}

Graph eliminate_dead_nodes(Graph graph) {
  std::vector<ValueId> replacement = identity_map(graph);
  for (const Node& n : graph.nodes)
    if (is_copy(graph, n)) replacement[static_cast<size_t>(n.outputs[0])] = n.inputs[0];
  apply_replacements(graph, replacement);

  std::vector<bool> needed(graph.values.size());
  for (ValueId v : graph.outputs) needed[static_cast<size_t>(v)] = true;
  std::vector<Node> kept;
  NamedSymbols named;
  named.note(graph.requirements);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& n = graph.nodes[i];
    bool wanted = named.defines_one(n);
    for (ValueId v : n.outputs) wanted |= v != kNone && needed[static_cast<size_t>(v)];
    if (!wanted) continue;
    for (ValueId v : n.inputs)
      if (v != kNone) needed[static_cast<size_t>(v)] = true;
    named.note(graph, n);
    kept.push_back(std::move(n));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  return compact(std::move(graph));
}

Graph eliminate_common_nodes(Graph graph) {
  using Key = std::tuple<const OpDef*, std::vector<ValueId>, Attributes>;
  std::map<Key, std::vector<ValueId>> seen;
  std::vector<ValueId> replacement = identity_map(graph);
  replace_common_constants(graph, replacement);
  for (Node& n : graph.nodes) {
    for (ValueId& v : n.inputs)
      if (v != kNone) v = replacement[static_cast<size_t>(v)];
    if (!n.op->compute || !n.defined_symbols.empty()) continue;
    auto [it, fresh] = seen.emplace(Key{n.op, n.inputs, n.attributes}, n.outputs);
    if (fresh) continue;
    for (size_t i = 0; i < n.outputs.size() && i < it->second.size(); ++i)
      if (n.outputs[i] != kNone && it->second[i] != kNone)
        replacement[static_cast<size_t>(n.outputs[i])] = it->second[i];
  }
  apply_replacements(graph, replacement);
  return eliminate_dead_nodes(std::move(graph));
}

}  // namespace tilewright::passes
