// Channels innermost around convolutions, as a rule (layout_cost): results lie side by side along the
// axis that vectors run over. Values that exchange their elements one to one share a layout. Graph inputs, results and
// views are row-major; between them and the others stands a copy, so that no kernel writes or reads
// across its vectors.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "passes/graph/layout_cost.h"
#include "passes/graph/pack_operands.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool wants_channels_last(const Node& n) { return n.op->channels == Channels::kInnermost; }
bool wants_operands_last(const Node& n) { return n.op->channels == Channels::kOperandsInnermost; }
// Does a layout of the operand carry over to the result at no cost?
bool is_transparent(const Node& n) {
  return n.op->fusion == FusionKind::kPointwise || n.op->channels == Channels::kAlong ||
         wants_channels_last(n);
}

// The operands whose elements go into those of the result: not weights.
std::vector<ValueId> exchanged(const Node& n) {
  return wants_channels_last(n) ? std::vector<ValueId>{n.inputs[0]} : n.inputs;
}

// Union-find: values that share a layout.
class Components {
 public:
  explicit Components(size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

Layout channels_last(int rank) {
  std::vector<int> order{0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return permuted_layout(order);
}

// The values that shall have their channels innermost. Asked once for each set of values that share
// a layout, under the name of the first of them.
std::vector<bool> chosen_values(const Graph& graph, const MachineDescription& machine,
                                Decisions& decisions) {
  Components components(graph.values.size());
  auto eligible = [&](ValueId v) {
    return v != kNone && !graph.value(v).constant && graph.value(v).type.rank() >= 3;
  };
  for (const Node& n : graph.nodes) {
    if (!is_transparent(n)) continue;
    for (ValueId out : n.outputs)
      for (ValueId in : exchanged(n))
        if (eligible(in) && eligible(out) &&
            graph.value(in).type.rank() == graph.value(out).type.rank())
          components.join(static_cast<size_t>(in), static_cast<size_t>(out));
  }
  std::map<size_t, LayoutCost> roots;
  for (const Node& n : graph.nodes)
    if (wants_channels_last(n) && eligible(n.outputs[0])) {
      roots[components.find(static_cast<size_t>(n.outputs[0]))] += layout_cost(graph, n, machine);
      if (eligible(n.inputs[0])) roots[components.find(static_cast<size_t>(n.inputs[0]))];
    }
  for (const Node& n : graph.nodes)
    if (wants_operands_last(n))
      for (ValueId in : n.inputs)
        if (eligible(in))
          roots[components.find(static_cast<size_t>(in))] += layout_cost(graph, n, machine);
  // What the graph takes and gives is row-major.
  for (const auto* given : {&graph.inputs, &graph.outputs})
    for (ValueId v : *given)
      if (const auto root = roots.find(components.find(static_cast<size_t>(v)));
          root != roots.end())
        root->second.channels_innermost += copy_cost(graph.value(v).type);
  std::vector<bool> chosen(graph.values.size());
  std::map<size_t, bool> innermost;  // by root
  for (size_t v = 0; v < chosen.size(); ++v) {
    const size_t root = components.find(v);
    const auto cost = roots.find(root);
    if (!eligible(static_cast<ValueId>(v)) || cost == roots.end()) continue;
    const auto [known, is_new] = innermost.try_emplace(root, true);
    if (is_new)
      known->second =
          decisions.decide_which(decision_name(graph, static_cast<ValueId>(v), "layout"),
                                 {"row_major", "channels_innermost"},
                                 cost->second.prefers_rows() ? 0 : 1, Bits::kKept) == 1;
    chosen[v] = known->second;
  }
  return chosen;
}

class ChooseLayouts : public GraphRewriter {
 public:
  // chosen: by value of the graph.
  ChooseLayouts(Graph graph, const std::vector<bool>& chosen, const MachineDescription& machine,
                Decisions* decisions)
      : GraphRewriter(std::move(graph), decisions), machine_(machine) {
    for (size_t v = 0; v < chosen.size(); ++v)
      if (chosen[v]) graph_.values[v].layout = channels_last(graph_.values[v].type.rank());
    for (ValueId v : graph_.inputs) keep_row_major(v);
    for (const Node& n : old_)
      if (n.op == ops::matmul()) ++products_[right_operand(n)];
    wants_rows_.resize(chosen.size());
    only_transposed_.resize(chosen.size(), true);
    auto note = [&](ValueId v, bool rows, bool transposed) {
      if (v == kNone) return;
      if (rows) wants_rows_[static_cast<size_t>(v)] = true;
      if (!transposed) only_transposed_[static_cast<size_t>(v)] = false;
    };
    for (ValueId v : graph_.outputs) note(v, true, false);
    for (const Node& n : old_)
      for (ValueId v : n.inputs)
        note(v, n.op == ops::reshape() || !n.regions.empty(), n.op == ops::transpose());
  }
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      place(n);
    }
    for (ValueId& v : graph_.outputs) {
      v = row_major(v);
      graph_.value(v).layout.clear();
    }
    return std::move(graph_);
  }

 private:
  // The results of transposes lie where their operands do, as long as the innermost dimension
  // stays: forwards for consumers that take any layout, else the operand is made as it is wanted.
  void place_transpose(const Node& n) {
    const ValueId from = n.inputs[0], to = n.outputs[0];
    const std::vector<int64_t> perm = NodeView(graph_, n).attr_ints("perm");
    const auto last = static_cast<int64_t>(perm.size()) - 1;
    if (perm.size() < 3 || perm.back() != last || !graph_.value(to).layout.empty() ||
        constant(from))
      return;
    if (!wants_rows_[static_cast<size_t>(to)]) {
      if (lies_row_major(from)) graph_.value(to).layout = transposed_layout({}, perm);
      return;
    }
    const NodeRef maker = producer(from);
    if (!maker || !maker->regions.empty() || maker->op == ops::reshape() ||
        maker->op == ops::transpose() || !used_once(from) || !graph_.value(from).layout.empty())
      return;
    std::vector<int> order(perm.begin(), perm.end());
    graph_.value(from).layout = permuted_layout(order);
  }
  // What is only transposed afterwards stays where it lies.
  bool place_view(const Node& n) {
    const ValueId from = n.inputs[0], to = n.outputs[0];
    if (lies_row_major(from) || !lies_row_major(to) || !only_transposed_[static_cast<size_t>(to)])
      return false;
    const auto layout = reshaped_layout(graph_.value(from).layout, type(from), type(to));
    if (layout) graph_.value(to).layout = *layout;
    return layout.has_value();
  }
  void place(Node& n) {
    const bool view = n.op == ops::reshape(), boundary = !n.regions.empty();
    if (view && !place_view(n) && lies_row_major(n.outputs[0]))
      n.inputs[0] = row_major(n.inputs[0]);
    for (size_t i = 0; i < n.inputs.size(); ++i) n.inputs[i] = packed(n, i);
    for (ValueId& v : n.inputs) {
      if (boundary) v = row_major(v);
      if ((is_transparent(n) || wants_operands_last(n)) && v != kNone) v = channels_innermost(v);
    }
    // A view of what is row-major is so, too.
    if (boundary || (view && lies_row_major(n.inputs[0])))
      for (ValueId v : n.outputs)
        if (v != kNone) keep_row_major(v);
    if (n.op == ops::transpose()) place_transpose(n);
    if (n.op == ops::checked_indices())  // its result is its operand, in the same memory
      graph_.value(n.outputs[0]).layout = graph_.value(n.inputs[0]).layout;
    push(std::move(n));
  }
  bool lies_row_major(ValueId v) const { return is_row_major(graph_.value(v).layout, type(v)); }
  void keep_row_major(ValueId v) {
    if (!lies_row_major(v)) wanted_[v] = graph_.value(v).layout;
    graph_.value(v).layout.clear();
  }
  ValueId row_major(ValueId v) {
    if (v == kNone || lies_row_major(v)) return v;
    auto [at, added] = rows_.try_emplace(v);
    if (added) at->second = op(ops::identity(), {v});
    return at->second;
  }
  // A value that is row-major though its consumers want it otherwise, as they want it.
  ValueId channels_innermost(ValueId v) {
    const auto wanted = wanted_.find(v);
    if (wanted == wanted_.end() ||
        as_int(type(v).dims[1]).value_or(kFewChannels + 1) <= kFewChannels)
      return v;
    auto [at, added] = copies_.try_emplace(v);
    if (added) {
      at->second = op(ops::identity(), {v});
      graph_.value(at->second).layout = wanted->second;
    }
    return at->second;
  }

  // What products that share a copy of it have in common.
  std::pair<ValueId, bool> right_operand(const Node& n) const {
    return {n.inputs.size() > 1 ? n.inputs[1] : kNone,
            n.op == ops::matmul() && NodeView(graph_, n).attr_int("trans_b") != 0};
  }

  // Operand i, or a copy that lies as the node wants it.
  ValueId packed(const Node& n, size_t i) {
    const PackedLayouts ways =
        layouts_to_pack(graph_, n, i, machine_, i == 1 && products_[right_operand(n)] > 1);
    if (ways.names.size() < 2) return n.inputs[i];
    const ValueId v = n.inputs[i];
    const Layout& layout = ways.layouts[decisions().decide_which(
        decision_name(graph_, n, "operand" + std::to_string(i)), ways.names, ways.usual,
        Bits::kKept)];
    if (layout.empty()) return v;
    // They are transformed, or transposed, into panels as well as into rows.
    if (const NodeRef maker = producer(v);
        maker && used_once(v) &&
        (maker->op == ops::winograd_weights() ||
         (maker->op == ops::transpose() && layout.back().modulus != 0))) {
      graph_.value(v).layout = layout;
      return v;
    }
    std::vector<ValueId>& copies = packed_[v];
    for (ValueId copy : copies)
      if (graph_.value(copy).layout == layout) return copy;
    copies.push_back(op(ops::identity(), {v}));
    graph_.value(copies.back()).layout = layout;
    return copies.back();
  }

  const MachineDescription& machine_;
  // By value: graph outputs, views or regions take it; nothing but transposes do.
  std::vector<bool> wants_rows_, only_transposed_;
  std::map<ValueId, std::vector<ValueId>> packed_;    // copies in other layouts
  std::map<std::pair<ValueId, bool>, int> products_;  // by right operand
  std::map<ValueId, Layout> wanted_;                  // of values that are row-major all the same
  std::map<ValueId, ValueId> copies_, rows_;          // with channels innermost, and row-major
};

}  // namespace

Graph choose_layouts(Graph graph, const MachineDescription& machine, Decisions* decisions) {
  Decisions usual;
  const std::vector<bool> chosen = chosen_values(graph, machine, decisions ? *decisions : usual);
  return ChooseLayouts(std::move(graph), chosen, machine, decisions).run();
}

}  // namespace tilewright::passes
