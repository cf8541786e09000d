#include "passes/analysis/placement.h"

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "ir/loops/simplify.h"
#include "ir/ops/known_ops.h"
#include "ir/ops/slicing.h"
#include "runtime/core/memory.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// How a reshape of `whole` to `dims` lies in it.
std::optional<Placement> placement_of_reshape(ValueId in, const std::vector<Expr>& whole,
                                              const std::vector<Expr>& dims) {
  const std::vector<DimRange> ranges = matching_dims(whole, dims);
  if (ranges.empty()) return std::nullopt;
  Placement p{in, std::vector<Expr>(whole.size(), Expr(0)), {}, {}, kNone};
  for (const DimRange& r : ranges) {
    // All of them in the one dimension that is longer than 1.
    size_t into = r.from_begin;
    int longer = 0;
    for (size_t d = r.from_begin; d < r.from_end; ++d)
      if (!is_one(whole[d]) && ++longer) into = d;
    if (longer > 1) return std::nullopt;
    int64_t step = 1;
    for (size_t d = r.to_end; d-- > r.to_begin;) {
      p.dim.insert(p.dim.begin() + static_cast<long>(r.to_begin), static_cast<int>(into));
      p.step.insert(p.step.begin() + static_cast<long>(r.to_begin), step);
      const auto extent = as_int(dims[d]);
      if (!extent && d > r.to_begin) return std::nullopt;
      step *= extent.value_or(1);
    }
  }
  return p;
}

}  // namespace

std::vector<Expr> Placement::indices(const std::vector<Expr>& i) const {
  std::vector<Expr> at = start;
  for (size_t d = 0; d < i.size(); ++d) {
    Expr& index = at[static_cast<size_t>(dim[d])];
    index = index + (step[d] == 1 ? i[d] : i[d] * Expr(step[d]));
  }
  return at;
}

Placement same_place(ValueId in, size_t rank) {
  Placement p{in, std::vector<Expr>(rank, Expr(0)), {}, std::vector<int64_t>(rank, 1), kNone};
  for (size_t d = 0; d < rank; ++d) p.dim.push_back(static_cast<int>(d));
  return p;
}
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

std::optional<int64_t> offset_of(const Value& value, const Value& whole, const Placement& p) {
  const auto own = strides_of(value.type, value.layout),
             outer = strides_of(whole.type, whole.layout);
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

std::optional<Placement> placement_of_view(const Graph& graph, const Node& n) {
  const ValueId from = n.inputs[0];
  const std::vector<Expr>& x = graph.value(from).type.dims;
  if (n.op != ops::transpose())
    return placement_of_reshape(from, x, graph.value(n.outputs[0]).type.dims);
  Placement p = same_place(from, x.size());
  const std::vector<int64_t> perm = NodeView(graph, n).attr_ints("perm");
  for (size_t d = 0; d < perm.size(); ++d) p.dim[d] = static_cast<int>(perm[d]);
  return p;
}
std::optional<Placement> placement_of_operand(const Graph& graph, const Node& n) {
  const ValueId to = n.outputs[0];
  const std::vector<Expr>& y = graph.value(to).type.dims;
  if (n.op != ops::transpose())
    return placement_of_reshape(to, y, graph.value(n.inputs[0]).type.dims);
  Placement p = same_place(to, y.size());
  const std::vector<int64_t> perm = NodeView(graph, n).attr_ints("perm");
  for (size_t d = 0; d < perm.size(); ++d)
    p.dim[static_cast<size_t>(perm[d])] = static_cast<int>(d);
  return p;
}
std::optional<Placement> placement_of_slice(const Graph& graph, const Node& n) {
  Placement p = same_place(n.inputs[0], graph.value(n.outputs[0]).type.dims.size());
  const std::vector<SliceAxis> axes = known_slice(NodeView(graph, n));
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto step = as_int(axes[d].step);
    if (!axes[d].start || !step) return std::nullopt;
    p.start[d] = axes[d].start;
    p.step[d] = *step;
  }
  return p;
}

}  // namespace tilewright::passes
