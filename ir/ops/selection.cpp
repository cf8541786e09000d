// Operators whose number of results depends on data: the places of non-zero elements, chosen
// elements.
#include <algorithm>

#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indexing_gradient.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// --- nonzero -----------------------------------------------------------------------------------

Status infer_nonzero(InferContext& c) {
  c.set_output(0, DType::kInt64, {Expr(c.rank(0)), c.data_dependent_symbol(0, "count")});
  return {};
}
// `hit` for each element that is not zero.
Stmt over_nonzero(const ComputeContext& c, const std::function<Stmt(const Axes&)>& hit) {
  return loop_nest(c.in(0)->shape, [&](const Axes& i) {
    return if_then(cast(DType::kBool, load(c.in(0), i)), hit(i));
  });
}
void compute_nonzero_count(ComputeContext& c) {
  const Scalars s(1);
  Stmt count = over_nonzero(c, [&](const Axes&) { return s.add(0, 1); });
  c.b.opaque(s.around(seq({s.set(0, 0), count, store(c.out(), {Expr(0)}, s.get(0))})), "count");
}
void compute_nonzero(ComputeContext& c) {
  if (c.rank(0) == 0) return;
  const Scalars s(1);
  Stmt scan = over_nonzero(c, [&](const Axes& i) {
    std::vector<Stmt> stores;
    for (size_t d = 0; d < i.size(); ++d)
      stores.push_back(store(c.out(), {Expr(static_cast<int64_t>(d)), s.get(0)}, i[d]));
    stores.push_back(s.add(0, 1));
    return seq(stores);
  });
  c.b.opaque(s.around(seq({s.set(0, 0), scan})), "nonzero");
}

// --- compress ----------------------------------------------------------------------------------

int compress_axis(const NodeView& c) { return c.has_attribute("axis") ? c.axis(c.rank(0)) : -1; }
// How many slices of x are chosen, where condition and extent are known.
std::optional<int64_t> known_compress_count(const NodeView& c) {
  const int axis = compress_axis(c);
  const auto extent = as_int(axis >= 0 ? c.dim(0, axis) : element_count(c.type(0)));
  if (!extent) return std::nullopt;
  if (const ConstantRef& mask = c.value(1).constant) {  // of any size, as known_ints is not
    int64_t count = 0;
    for (int64_t k = 0; k < std::min(*extent, tilewright::element_count(mask->shape).value_or(0));
         ++k)
      count += integer_at(*mask, k) != 0;
    return count;
  }
  const auto chosen = c.known_ints(1);
  if (!chosen) return std::nullopt;
  const auto end = chosen->begin() + std::min<int64_t>(*extent, std::ssize(*chosen));
  return std::count_if(chosen->begin(), end, [](int64_t is_chosen) { return is_chosen != 0; });
}
Status infer_compress(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = compress_axis(c);
  if (c.has_attribute("axis") && (axis < 0 || axis >= x.rank()))
    return c.error(axis_message(c.attr_int("axis"), x));
  if (c.rank(1) != 1 || c.type(1).dtype != DType::kBool)
    return c.error("condition is " + to_string(c.type(1)) + ", expected bool of one dimension");
  const std::optional<int64_t> known = known_compress_count(c);
  const Expr count = known ? Expr(*known) : c.data_dependent_symbol(0, "count");
  std::vector<Expr> dims{count};
  if (axis >= 0) {
    dims = x.dims;
    dims[static_cast<size_t>(axis)] = count;
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
// Elements of the condition that say something about x: a shorter condition is taken as ending in
// false.
Expr compress_extent(const ComputeContext& c) {
  const int axis = compress_axis(c);
  return min(c.dim(1, 0), axis >= 0 ? c.dim(0, axis) : element_count(c.type(0)));
}
Stmt over_chosen(const ComputeContext& c, const Scalars& s,
                 const std::function<Stmt(const Expr&)>& hit) {
  Stmt scan = loop_nest({compress_extent(c)}, [&](const Axes& i) {
    return if_then(load(c.in(1), i), seq({hit(i[0]), s.add(0, 1)}));
  });
  return seq({s.set(0, 0), scan});
}
void compute_compress_count(ComputeContext& c) {
  const Scalars s(1);
  Stmt scan = loop_nest({compress_extent(c)},
                        [&](const Axes& i) { return if_then(load(c.in(1), i), s.add(0, 1)); });
  c.b.opaque(s.around(seq({s.set(0, 0), scan, store(c.out(), {Expr(0)}, s.get(0))})), "count");
}
void compute_compress(ComputeContext& c) {
  const int axis = compress_axis(c);
  const size_t d = axis >= 0 ? static_cast<size_t>(axis) : 0;
  Buffer chosen = c.b.temp("chosen", DType::kInt64, {c.out()->shape[d]});
  const Scalars s(1);
  c.b.opaque(
      s.around(over_chosen(c, s, [&](const Expr& i) { return store(chosen, {s.get(0)}, i); })),
      "chosen");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        if (axis < 0) return load(c.in(0), unravel(load(chosen, i), c.in(0)->shape));
        Axes at = i;
        at[d] = load(chosen, {i[d]});
        return load(c.in(0), at);
      },
      "compress");
}

}  // namespace

const std::vector<OpDef>& selection_ops() {
  static const std::vector<OpDef> ops{
      {.name = "nonzero",
       .summary = "indices of the elements that are not zero: [rank, count], in row-major order",
       .operands = {{"x"}},
       .infer_type = infer_nonzero,
       .compute = compute_nonzero,
       .compute_symbols = compute_nonzero_count,
       .example = {.inputs = {{DType::kInt32, {3, 4}}}, .values = {{0, 2, 0, 1, 5}}},
       .source = "https://onnx.ai/onnx/operators/onnx__NonZero.html"},
      {.name = "compress",
       .summary = "the slices of x along an axis where the condition holds",
       .operands = {{"x"}, {"condition"}},
       .attributes = {{"axis", AttributeKind::kInt, "absent: x as one list"}},
       .infer_type = infer_compress,
       .compute = compute_compress,
       .gradient = gradient_of_compress,
       .compute_symbols = compute_compress_count,
       .example = {.inputs = {{DType::kFloat32, {3, 4}}, {DType::kBool, {3}}},
                   .attributes = {{"axis", int64_t{0}}},
                   .values = {{}, {1, 0, 1}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Compress.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
