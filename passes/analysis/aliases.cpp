// In-place concatenation, padding and slicing: a producer writes its result directly into the part
// of the consumer's buffer where it belongs, or a consumer reads a slice where it lies. DenseNets
// and U-Nets consist of such copies. Greedy, in the order of nodes: a value is placed once, and
// only where
//
//    - all of its readers can follow (views included), and it is no result of the graph;
//    - rows of at least kShortestRun bytes stay contiguous, or a copy would be faster;
//    - a concat saves the copying of at least half of its result.
#include "passes/analysis/aliases.h"

#include <algorithm>
#include <set>

#include "ir/graph/op.h"
#include "ir/loops/layout.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/known_ops.h"
#include "ir/ops/slicing.h"
#include "passes/analysis/view_layouts.h"
#include "runtime/core/memory.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kShortestRun = 64;  // bytes side by side: less is worse than a copy
constexpr int64_t kUnknownExtent = 64;

// The identity: element i of the value is element i of `in`.
Placement plain(ValueId in, size_t rank) {
  Placement p{in, std::vector<Expr>(rank, Expr(0)), {}, std::vector<int64_t>(rank, 1), kNone};
  for (size_t d = 0; d < rank; ++d) p.dim.push_back(static_cast<int>(d));
  return p;
}
// A placement in a value that is placed itself, as one in the latter's value.
Placement compose(const Placement& inner, const Placement& outer) {
  Placement p{outer.in, outer.indices(inner.start), {}, {}, inner.joined};
  for (Expr& e : p.start) e = simplify(e);
  for (size_t d = 0; d < inner.dim.size(); ++d) {
    const auto b = static_cast<size_t>(inner.dim[d]);
    p.dim.push_back(outer.dim[b]);
    p.step.push_back(inner.step[d] * outer.step[b]);
  }
  return p;
}

// Elements from one index to the next, by dimension; nothing where blocks or unknown extents forbid.
std::optional<std::vector<int64_t>> strides_of(const Value& v) {
  const auto shape = constant_shape(v.type);
  if (!shape) return std::nullopt;
  std::vector<int64_t> strides(shape->size(), 0);
  for (const PhysicalAxis& a : physical_axes(v.layout, *shape)) {
    if (a.divisor != 1 || a.modulus != 0) return std::nullopt;
    strides[static_cast<size_t>(a.dim)] = a.stride;
  }
  return strides;
}
// Placement::offset.
std::optional<int64_t> offset_of(const Value& value, const Value& whole, const Placement& p) {
  const auto own = strides_of(value), outer = strides_of(whole);
  if (!own || !outer || value.type.dtype != whole.type.dtype) return std::nullopt;
  for (size_t d = 0; d < own->size(); ++d) {
    const int64_t extent = *as_int(value.type.dims[d]);
    if (extent == 0 ||
        (extent > 1 && (*own)[d] != p.step[d] * (*outer)[static_cast<size_t>(p.dim[d])]))
      return std::nullopt;
  }
  int64_t elements = 0;
  for (size_t d = 0; d < outer->size(); ++d) {
    const auto start = as_int(p.start[d]);
    if (!start) return std::nullopt;
    elements += *start * (*outer)[d];
  }
  const int64_t bytes = elements * byte_size(value.type.dtype);
  return bytes % static_cast<int64_t>(kHostAlignment) == 0 ? std::optional(bytes) : std::nullopt;
}
// What a slice takes of its operand.
std::optional<Placement> placement_of_slice(const Graph& graph, const Node& n) {
  Placement p = plain(n.inputs[0], graph.value(n.outputs[0]).type.dims.size());
  const std::vector<SliceAxis> axes = known_slice(NodeView(graph, n));
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto step = as_int(axes[d].step);
    if (!axes[d].start || !step) return std::nullopt;
    p.start[d] = axes[d].start;
    p.step[d] = *step;
  }
  return p;
}

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

  // How a view's elements lie in its operand's; nothing when that takes a division.
  std::optional<Placement> of_view(const Node& n) const {
    const ValueId from = n.inputs[0], to = n.outputs[0];
    const TensorType &x = value(from).type, &y = value(to).type;
    if (n.op == ops::transpose()) {
      Placement p = plain(from, x.dims.size());
      const std::vector<int64_t> perm = NodeView(graph_, n).attr_ints("perm");
      for (size_t d = 0; d < perm.size(); ++d) p.dim[d] = static_cast<int>(perm[d]);
      return p;
    }
    const std::vector<DimRange> ranges = matching_dims(x.dims, y.dims);
    if (ranges.empty()) return std::nullopt;
    Placement p{from, std::vector<Expr>(x.dims.size(), Expr(0)), {}, {}, kNone};
    for (const DimRange& r : ranges) {
      // All of them in the one dimension that is longer than 1.
      size_t into = r.from_begin;
      int longer = 0;
      for (size_t d = r.from_begin; d < r.from_end; ++d)
        if (!is_one(x.dims[d]) && ++longer) into = d;
      if (longer > 1) return std::nullopt;
      int64_t step = 1;
      for (size_t d = r.to_end; d-- > r.to_begin;) {
        p.dim.insert(p.dim.begin() + static_cast<long>(r.to_begin), static_cast<int>(into));
        p.step.insert(p.step.begin() + static_cast<long>(r.to_begin), step);
        const auto extent = as_int(y.dims[d]);
        if (!extent && d > r.to_begin) return std::nullopt;
        step *= extent.value_or(1);
      }
    }
    return p;
  }

  // Can all that reads v, views of it too, read it elsewhere?
  bool may_move(ValueId v) const {
    if (fixed_[static_cast<size_t>(v)] || value(v).constant || aliases_.count(v)) return false;
    for (size_t i : consumers_[static_cast<size_t>(v)]) {
      const Node& n = graph_.nodes[i];
      if (!n.op->compute) return false;
      if (is_view(graph_, n) && (!of_view(n) || !may_move(n.outputs[0]))) return false;
    }
    return true;
  }
  void place(ValueId v, const Placement& p) {
    aliases_[v] = p;
    for (size_t i : consumers_[static_cast<size_t>(v)])
      if (const Node& n = graph_.nodes[i]; is_view(graph_, n))
        place(n.outputs[0], compose(*of_view(n), p));
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
  // Is v stored by a kernel of this graph, which may as well store it elsewhere?
  bool is_made_here(ValueId v) const {
    const int32_t p = value(v).producer;
    if (p < 0) return false;
    const Node& n = graph_.nodes[static_cast<size_t>(p)];
    return n.op->compute && n.defined_symbols.empty() && !is_view(graph_, n);
  }
  // Can the value be stored as a part of the result, along this axis?
  bool may_join(ValueId v, const Value& result, int axis) const {
    return is_made_here(v) && may_move(v) && known_before_the_run(value(v)) &&
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
    Placement p = plain(n.outputs[0], rank);
    p.joined = n.outputs[0];
    for (size_t d = 0; d < rank; ++d) p.start[d] = (*pads)[d];
    for (size_t k = order.size(); k-- > 0;) {
      const auto d = static_cast<size_t>(order[k]);
      if ((*pads)[d] + (*pads)[d + rank] == 0) continue;
      if (may_join(n.inputs[0], result, order[k])) place(n.inputs[0], p);
      return;
    }
  }
  void place_operands(const Node& n) {
    const ValueId to = n.outputs[0];
    const Value& result = value(to);
    const int axis = NodeView(graph_, n).axis(result.type.rank());
    if (!known_before_the_run(result)) return;
    const bool interleave = NodeView(graph_, n).attr_int("interleave") != 0;
    std::vector<std::pair<ValueId, Placement>> placed;
    int64_t moved = 0;
    Expr start = 0;
    for (ValueId v : n.inputs) {
      Placement p = plain(to, result.type.dims.size());
      p.joined = to;
      p.start[static_cast<size_t>(axis)] = start;
      if (interleave) p.step[static_cast<size_t>(axis)] = static_cast<int64_t>(n.inputs.size());
      start = interleave ? start + Expr(1)
                         : simplify(start + value(v).type.dims[static_cast<size_t>(axis)]);
      if (std::count(n.inputs.begin(), n.inputs.end(), v) > 1 || !may_join(v, result, axis) ||
          (interleave && memory_order(result).back() == axis))
        continue;
      moved += elements(value(v));
      placed.emplace_back(v, std::move(p));
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

std::vector<Expr> Placement::indices(const std::vector<Expr>& i) const {
  std::vector<Expr> at = start;
  for (size_t d = 0; d < i.size(); ++d) {
    Expr& index = at[static_cast<size_t>(dim[d])];
    index = index + (step[d] == 1 ? i[d] : i[d] * Expr(step[d]));
  }
  return at;
}

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
