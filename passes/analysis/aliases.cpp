// In-place concatenation, padding and slicing: a producer writes its result directly into the part
// of the consumer's buffer where it belongs, or a consumer reads a slice where it lies. DenseNets
// and U-Nets consist of such copies. Greedy, in the order of nodes: a value is placed once, and
// only where
//
//    - all of its readers can follow (views included), and it is no result of the graph;
//    - a kernel stores it, or what it is a view of;
//    - rows of at least kShortestRun bytes stay contiguous, or a copy would be faster;
//    - a concat saves the copying of at least half of its result;
//    - no extent of the concat is a sum of very many: kernels of all operands would have such addresses.
#include "passes/analysis/aliases.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/known_ops.h"
#include "passes/analysis/extents.h"
#include "passes/analysis/views.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kShortestRun = 64;  // bytes side by side: less is worse than a copy
constexpr size_t kMostTerms = 16;     // of an extent

class ChooseAliases {
 public:
  explicit ChooseAliases(const Graph& graph)
      : graph_(graph), consumers_(graph.values.size()), fixed_(graph.values.size()) {
    std::map<int32_t, int> members;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& n = graph.nodes[i];
      ++members[n.group];
      for (ValueId v : n.inputs)
        if (v != kNone) consumers_[static_cast<size_t>(v)].push_back(i);
      for (const Var& s : n.defined_symbols) of_the_run_.insert(s.get());
    }
    for (const Node& n : graph.nodes) alone_.push_back(members[n.group] == 1);
    for (ValueId v : graph.outputs) fixed_[static_cast<size_t>(v)] = true;
  }

  Aliases run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& n = graph_.nodes[i];
      if (!alone_[i]) continue;
      if (n.op == ops::slice()) place_slice(n);
      if (n.op == ops::concat()) place_operands(n);
      if (n.op == ops::pad()) place_padded(n);
    }
    // What is placed in a value that was placed later.
    for (auto& [v, p] : aliases_)
      for (auto outer = aliases_.find(p.in); outer != aliases_.end(); outer = aliases_.find(p.in))
        p = compose(p, outer->second);
    for (auto& [v, p] : aliases_) p.offset = offset_of(value(v), value(p.in), p);
    return std::move(aliases_);
  }

 private:
  const Value& value(ValueId v) const { return graph_.value(v); }

  // Can all that reads v, views of it too, read it elsewhere? `known`: one that has its place.
  bool may_move(ValueId v, ValueId known = kNone) const {
    if (fixed_[static_cast<size_t>(v)] || value(v).constant || aliases_.count(v)) return false;
    for (size_t i : consumers_[static_cast<size_t>(v)]) {
      const Node& n = graph_.nodes[i];
      if (!n.op->compute) return false;
      if (is_view(graph_, n) && n.outputs[0] != known &&
          (!placement_of_view(graph_, n) || !may_move(n.outputs[0])))
        return false;
    }
    return true;
  }
  // And the views of it that have no place yet.
  void place(ValueId v, const Placement& p) {
    aliases_[v] = p;
    for (size_t i : consumers_[static_cast<size_t>(v)])
      if (const Node& n = graph_.nodes[i]; is_view(graph_, n) && !aliases_.count(n.outputs[0]))
        place(n.outputs[0], compose(*placement_of_view(graph_, n), p));
  }

  void place_slice(const Node& n) {
    const ValueId from = n.inputs[0], to = n.outputs[0];
    if (!n.defined_symbols.empty() || value(from).constant || !may_move(to) ||
        !is_same_order(value(from).layout, value(to).layout, value(to).type))
      return;
    const std::optional<Placement> p = placement_of_slice(graph_, n);
    // Vectors run along the innermost dimension.
    const std::vector<int> order = memory_order(value(to));
    if (!p || (!order.empty() && p->step[static_cast<size_t>(order.back())] != 1)) return;
    place(to, *p);
  }

  // Dimensions longer than 1, outermost first.
  static std::vector<int> memory_order(const Value& v) {
    std::vector<int> order;
    for (int d = 0; v.layout.empty() && d < v.type.rank(); ++d) order.push_back(d);
    for (const LayoutAxis& a : v.layout) order.push_back(a.dim);
    std::erase_if(order, [&](int d) { return is_one(v.type.dims[static_cast<size_t>(d)]); });
    return order;
  }
  bool known_before_the_run(const Value& v) const {
    for (const Expr& d : v.type.dims)
      for (const Var& s : free_vars_in_order(d))
        if (of_the_run_.count(s.get())) return false;
    return true;
  }
  static bool has_long_extent(const Value& v) {
    return std::any_of(v.type.dims.begin(), v.type.dims.end(),
                       [](const Expr& d) { return to_linear(d).terms.size() > kMostTerms; });
  }
  static int64_t elements(const Value& v) {
    int64_t n = 1;
    for (const Expr& d : v.type.dims)
      n = std::min<int64_t>(n * as_int(d).value_or(kUnknownExtent), int64_t{1} << 40);
    return n;
  }
  // Bytes of an operand that lie side by side in the result, or all when it is one stretch. Of an
  // interleaved operand, these are those of the dimensions inside the axis; its rows are no
  // shorter.
  static int64_t run_bytes(const Value& operand, const Value& result, int axis) {
    int64_t n = byte_size(operand.type.dtype);
    const std::vector<int> order = memory_order(result);
    if (!order.empty() && order[0] == axis) return kShortestRun;
    for (size_t k = order.size(); k-- > 0;) {
      n *= as_int(operand.type.dims[static_cast<size_t>(order[k])]).value_or(kUnknownExtent);
      if (order[k] == axis) break;
    }
    return n;
  }
  using Placed = std::vector<std::pair<ValueId, Placement>>;
  // v, placed by p, and what it is a view of, up to what a kernel of this graph stores, which may as well
  // store it there; empty: none does. What views show has to lie there in one piece.
  Placed with_operands(ValueId v, Placement p) const {
    Placed all;
    const ValueId joined = p.joined;
    for (ValueId view = kNone; may_move(v, view);) {
      all.emplace_back(v, p);
      const int32_t producer = value(v).producer;
      if (producer < 0) break;
      const Node& n = graph_.nodes[static_cast<size_t>(producer)];
      if (!is_view(graph_, n)) {
        if (!n.op->compute || !n.defined_symbols.empty()) break;
        return all;
      }
      const auto of_operand = placement_of_operand(graph_, n);
      if (!of_operand) break;
      view = std::exchange(v, n.inputs[0]);
      p = compose(*of_operand, p);
      p.joined = joined;
      if (!offset_of(value(v), value(p.in), p)) break;
    }
    return {};
  }
  // Can the value be stored as a part of the result, along this axis?
  bool may_join(ValueId v, const Value& result, int axis) const {
    return known_before_the_run(value(v)) &&
           is_same_order(value(v).layout, result.layout, result.type) &&
           run_bytes(value(v), result, axis) >= kShortestRun;
  }
  void place_padded(const Node& n) {
    const NodeView view(graph_, n);
    const Value& result = value(n.outputs[0]);
    const auto pads = view.known_ints(1);
    const std::vector<int> order = memory_order(result);
    const auto rank = result.type.dims.size();
    if (view.attr_string("mode", "constant") != "constant" || view.has(3) || !pads ||
        pads->size() != 2 * rank || !known_before_the_run(result) ||
        std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p < 0; }))
      return;
    Placement p = same_place(n.outputs[0], rank);
    p.joined = n.outputs[0];
    for (size_t d = 0; d < rank; ++d) p.start[d] = (*pads)[d];
    for (size_t k = order.size(); k-- > 0;) {
      const auto d = static_cast<size_t>(order[k]);
      if ((*pads)[d] + (*pads)[d + rank] == 0) continue;
      if (may_join(n.inputs[0], result, order[k]))
        for (const auto& [v, at] : with_operands(n.inputs[0], p)) place(v, at);
      return;
    }
  }
  void place_operands(const Node& n) {
    const ValueId to = n.outputs[0];
    const Value& result = value(to);
    const int axis = NodeView(graph_, n).axis(result.type.rank());
    if (!known_before_the_run(result) || has_long_extent(result)) return;
    const bool interleave = NodeView(graph_, n).attr_int("interleave") != 0;
    Placed placed;
    std::set<ValueId> values;
    int64_t moved = 0;
    Expr start = 0;
    for (ValueId v : n.inputs) {
      Placement p = same_place(to, result.type.dims.size());
      p.joined = to;
      p.start[static_cast<size_t>(axis)] = start;
      if (interleave) p.step[static_cast<size_t>(axis)] = static_cast<int64_t>(n.inputs.size());
      start = interleave ? start + Expr(1)
                         : simplify(start + value(v).type.dims[static_cast<size_t>(axis)]);
      if (std::count(n.inputs.begin(), n.inputs.end(), v) > 1 || !may_join(v, result, axis) ||
          (interleave && memory_order(result).back() == axis))
        continue;
      const Placed all = with_operands(v, std::move(p));
      if (all.empty() || !values.insert(all.back().first).second) continue;
      moved += elements(value(v));
      placed.insert(placed.end(), all.begin(), all.end());
    }
    if (2 * moved < elements(result)) return;
    for (const auto& [v, p] : placed) place(v, p);
  }

  const Graph& graph_;
  std::vector<std::vector<size_t>> consumers_;  // nodes, by value
  std::vector<bool> fixed_;                     // results of the graph
  std::vector<bool> alone_;                     // nodes that are a group each
  std::set<const ExprNode*> of_the_run_;        // symbols that nodes define
  Aliases aliases_;
};

}  // namespace

bool is_piece_of_input(const Graph& graph, const Node& node) {
  if (node.op != ops::slice() || !node.defined_symbols.empty()) return false;
  const Value &from = graph.value(node.inputs[0]), &to = graph.value(node.outputs[0]);
  if (from.producer >= 0 || from.constant || !is_same_order(from.layout, to.layout, to.type))
    return false;
  const std::optional<Placement> p = placement_of_slice(graph, node);
  return p && offset_of(to, from, *p);
}

Aliases choose_aliases(const Graph& graph) { return ChooseAliases(graph).run(); }

}  // namespace tilewright::passes
