// Pooling beyond max and mean: indices of the largest elements, sums.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indexing_gradient.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"
#include "ir/ops/window.h"

namespace tilewright::ir {
namespace {

WindowGeometry geometry(const ComputeContext& c) {
  return window_geometry(c, c.type(0).dims, c.attr_ints("kernel_shape")).value();
}

// Number of an element of x in row-major order; column-major within a channel when asked for.
Expr flat_index(const std::vector<Expr>& shape, const Axes& at, bool column_major) {
  Expr flat = at[0] * shape[1] + at[1];
  for (size_t d = 2; d < shape.size(); ++d) flat = flat * shape[d];
  Expr inner = 0;
  for (size_t k = 2; k < shape.size(); ++k) {
    const size_t d = column_major ? shape.size() + 1 - k : k;
    inner = inner * shape[d] + at[d];
  }
  return flat + inner;
}

Status infer_max_pool_indices(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_pool(c));
  const std::vector<Expr> dims = c.outputs()[0].dims;
  c.set_output(1, DType::kInt64, dims);
  return {};
}
void compute_max_pool_indices(ComputeContext& c) {
  const WindowGeometry g = geometry(c);
  const Buffer& x = c.in(0);
  const bool column_major = c.attr_int("storage_order") != 0;
  auto init = [&](const Axes& i) {
    return seq({store(c.out(0), i, lowest(x->dtype)), store(c.out(1), i, Expr(-1))});
  };
  auto update = [&](const Axes& i, const Axes& r) {
    Expr inside;
    const Axes at = window_position(g, x, i, r, inside);
    Expr better = select(
        inside, logical_or(load(c.out(1), i) < Expr(0), is_above(load(x, at), load(c.out(0), i))),
        bool_imm(false));
    return if_then(better, seq({store(c.out(0), i, load(x, at)),
                                store(c.out(1), i, flat_index(x->shape, at, column_major))}));
  };
  c.b.opaque_over(
      c.out(0)->shape,
      [&](const Axes& i) {
        return seq(
            {init(i), loop_nest(window_extents(g), [&](const Axes& r) { return update(i, r); })});
      },
      "max_pool");
}

void compute_sum_pool(ComputeContext& c) {
  const WindowGeometry g = geometry(c);
  const Buffer &x = c.in(0), &y = c.out();
  const DType acc = accumulator(x->dtype);
  Buffer sum = acc == x->dtype ? y : c.b.temp("sum", acc, y->shape);
  c.b.reduce(
      sum, window_extents(g), Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Expr inside;
        const Axes at = window_position(g, x, i, r, inside);
        return cast(acc, select(inside, load(x, at), constant(0, x->dtype)));
      },
      "sum_pool");
  if (sum != y)
    c.b.compute(y, [&](const Axes& i) { return cast(y->dtype, load(sum, i)); }, "round");
}

// --- max_unpool --------------------------------------------------------------------------------

// Indices count in a tensor of the extents `from`; the result may have others, and elements beyond it are left out.
Status infer_max_unpool(InferContext& c) {
  auto dims = known_dims(c, 2), from = known_dims(c, 3);
  if (!dims || !from) return c.needs_value("the output shape is not known at compile time");
  if (static_cast<int>(dims->size()) != c.rank(0) || dims->size() != from->size() ||
      c.rank(1) != c.rank(0))
    return c.error("x is " + to_string(c.type(0)) + ", indices is " + to_string(c.type(1)) +
                   ", the output shape has " + std::to_string(dims->size()) + " elements");
  for (int d = 0; d < c.rank(0); ++d)
    if (!c.agree(c.dim(0, d), c.dim(1, d)))
      return c.error("x is " + to_string(c.type(0)) + ", indices is " + to_string(c.type(1)));
  c.set_output(0, c.type(0).dtype, *dims);
  return {};
}
void compute_max_unpool(ComputeContext& c) {
  const std::vector<Expr> from = *known_dims(c, 3);
  c.b.compute(c.out(), [&](const Axes&) { return constant(0, c.out()->dtype); }, "zero");
  c.b.opaque(loop_nest(c.in(0)->shape,
                       [&](const Axes& i) {
                         return with_value("place", load(c.in(1), i), [&](const Expr& place) {
                           const Axes at = unravel(place, from);
                           Expr inside = place >= Expr(0);
                           for (size_t d = 0; d < at.size(); ++d)
                             inside = logical_and(inside, at[d] < c.out()->shape[d]);
                           return if_then(inside, store(c.out(), at, load(c.in(0), i)));
                         });
                       }),
             "max_unpool");
}

}  // namespace

const std::vector<OpDef>& pooling_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 7, 6}};
  static const Attributes window{{"kernel_shape", std::vector<int64_t>{3, 2}},
                                 {"pads", std::vector<int64_t>{1, 0, 1, 0}}};
  static const std::vector<OpDef> ops{
      {.name = "max_pool_indices",
       .summary = "largest element of each window, or NaN if there is one, and its number in x",
       .operands = {{"x"}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back(
                 {"storage_order", AttributeKind::kInt, "1: numbers run down columns first"});
             return a;
           }(),
       .outputs = "y,indices",
       .infer_type = infer_max_pool_indices,
       .compute = compute_max_pool_indices,
       .gradient = gradient_of_max_pool,
       .example = {.inputs = {x4}, .attributes = window, .outputs = 2},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxPool.html"},
      {.name = "sum_pool",
       .summary = "sum of each window",
       .operands = {{"x"}},
       .attributes = kWindowAttributes,
       .fusion = FusionKind::kReduction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_pool,
       .compute = compute_sum_pool,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {x4}, .attributes = window},
       .source = "https://onnx.ai/onnx/operators/onnx__LpPool.html"},
      {.name = "max_unpool",
       .summary = "zeros with the elements of x at their numbers in a tensor of the extents `from`",
       .operands = {{"x"}, {"indices"}, {"shape"}, {"from"}},
       .infer_type = infer_max_unpool,
       .compute = compute_max_unpool,
       .gradient = gradient_of_max_unpool,
       .example = {.inputs = {{DType::kFloat32, {1, 1, 1, 2}},
                              {DType::kInt64, {1, 1, 1, 2}},
                              {DType::kInt64, {4}},
                              {DType::kInt64, {4}}},
                   .values = {{}, {1, 6}, {1, 1, 3, 4}, {1, 1, 2, 4}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxUnpool.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
