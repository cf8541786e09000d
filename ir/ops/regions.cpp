// The largest elements of regions of an image that are data.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// rois: rows of batch, x1, y1, x2, y2; the regions are rounded to whole elements.
Status infer_max_roi_pool(InferContext& c) {
  const auto &x = c.type(0), &rois = c.type(1);
  const auto pooled = c.attr_ints("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || !c.agree(rois.dims[1], 5) || pooled.size() != 2 ||
      rois.dtype != x.dtype)
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois) +
                   ": expected [n, c, h, w] and [r, 5]");
  const std::vector<Expr> dims{rois.dims[0], x.dims[1], Expr(pooled[0]), Expr(pooled[1])};
  c.set_output(0, x.dtype, dims);
  c.set_output(1, DType::kInt64, dims);
  return {};
}
void compute_max_roi_pool(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const DType t = accumulator(x->dtype);
  const Expr scale = constant(c.attr_float("spatial_scale", 1), t);
  auto whole = [&](const Expr& v) { return cast(DType::kInt64, v); };
  auto flat = [&](const Axes& at) {  // number of an element
    Expr n = at[0];
    for (size_t d = 1; d < at.size(); ++d) n = n * x->shape[d] + at[d];
    return n;
  };
  struct Bin {
    Expr low, high;
  };
  auto bin = [&](const Axes& i, int direction) -> Bin {
    auto edge = [&](int k) {
      return whole(unary(UnaryOp::kFloor,
                         cast(t, load(c.in(1), {i[0], Expr(k)})) * scale + constant(0.5, t)));
    };
    const Expr start = edge(2 - direction), length = max(edge(4 - direction) - start + 1, 1),
               n = c.dim(0, 2 + direction);
    const Expr size = cast(t, length) / cast(t, c.out()->shape[static_cast<size_t>(2 + direction)]),
               k = i[static_cast<size_t>(2 + direction)];
    return {clamp(start + whole(unary(UnaryOp::kFloor, cast(t, k) * size)), 0, n),
            clamp(start + whole(unary(UnaryOp::kCeil, cast(t, k + 1) * size)), 0, n)};
  };
  c.b.opaque_over(
      c.out()->shape,
      [&](const Axes& i) {
        const Bin h = bin(i, 0), w = bin(i, 1);
        const Expr batch = clamped_index(whole(load(c.in(1), {i[0], Expr(0)})), c.dim(0, 0));
        Stmt scan = loop_nest({h.high - h.low, w.high - w.low}, [&](const Axes& k) {
          const Axes at{batch, i[1], h.low + k[0], w.low + k[1]};
          const Expr value = load(x, at);
          Stmt take = store(c.out(), i, max(load(c.out(), i), value));
          if (!c.wants(1)) return take;
          const Expr better =
              logical_or(load(c.out(1), i) < Expr(0), is_above(value, load(c.out(), i)));
          return seq({if_then(better, store(c.out(1), i, flat(at))), take});
        });
        Expr empty = logical_or(h.high <= h.low, w.high <= w.low);
        Stmt start = store(c.out(), i, select(empty, constant(0, x->dtype), lowest(x->dtype)));
        if (c.wants(1)) start = seq({start, store(c.out(1), i, Expr(-1))});
        return seq({start, scan});
      },
      "max_roi_pool");
}
// To the first of the largest elements; an empty bin has none. Regions count in whole elements, so
// that nothing changes with them but in steps.
void gradient_of_max_roi_pool(GradientContext& c) {
  if (!c.has_dy(0)) return;
  const V place = c.out(1), dy = c.dy();
  const std::vector<Expr> dims = c.type(c.in(0).id).dims;
  Expr count = 1;
  for (const Expr& d : dims) count = count * d;
  const V given = where(less(place, 0), dy.number(0), dy);
  const V dx = c.adjoint("gather", {{"clamps", int64_t{1}}}, {simplify(count)}, given, {place.id});
  c.add(0, {c, c.reshape(dx.id, dims)});
}

}  // namespace

const std::vector<OpDef>& region_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 7, 6}};
  static const std::vector<OpDef> ops{
      {.name = "max_roi_pool",
       .summary =
           "largest element of each bin of regions of x, and its number in x; -1: an empty bin",
       .operands = {{"x"}, {"rois"}},
       .attributes = {{"pooled_shape", AttributeKind::kInts, "height and width of the result"},
                      {"spatial_scale", AttributeKind::kFloat, "of rois; default 1"}},
       .outputs = "y,indices",
       .infer_type = infer_max_roi_pool,
       .compute = compute_max_roi_pool,
       .gradient = gradient_of_max_roi_pool,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 5}}},
                   .attributes = {{"pooled_shape", std::vector<int64_t>{2, 2}}},
                   .values = {{}, {0, 1, 0, 4, 5}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
