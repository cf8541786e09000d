// The gradient of max_pool: the loss's derivative by each result goes to the element that it was.
//
// Which one that is, the first of equals, is a number within the window (a tap) for each result. By
// taps each element of x gathers what the windows that it lies in pass on: no two write to one place,
// whatever overlaps, and sums have one order. Scattering by flat indices of 64 bits, as other systems
// do, would be serial here.
#include "ir/ops/families.h"
#include "ir/ops/sort_loops.h"
#include "ir/ops/window.h"

namespace tilewright::ir {
namespace {

constexpr const char* kExtents = "extents";

// Number of an element of the window in row-major order.
Expr tap_number(const WindowGeometry& g, const Axes& r) {
  Expr n = 0;
  for (size_t d = 0; d < g.kernel.size(); ++d) n = n * Expr(g.kernel[d]) + r[d];
  return cast(DType::kInt32, n);
}

Status infer_taps(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_pool(c));
  const std::vector<Expr> dims = c.outputs()[0].dims;
  bool fits = c.type(1).dtype == c.type(0).dtype && c.rank(1) == static_cast<int>(dims.size());
  for (size_t d = 0; fits && d < dims.size(); ++d) fits = c.agree(c.type(1).dims[d], dims[d]);
  if (!fits)
    return c.error("y is " + to_string(c.type(1)) + ", expected " +
                   to_string(TensorType{c.type(0).dtype, dims}));
  c.set_output(0, DType::kInt32, dims);
  return {};
}
// The least of the places that hold y: a plain reduction, which vectors take as they take max_pool.
void compute_taps(ComputeContext& c) {
  const WindowGeometry g = window_geometry(c, c.type(0).dims, c.attr_ints("kernel_shape")).value();
  const Buffer &x = c.in(0), &y = c.in(1);
  c.b.reduce(
      c.out(), window_extents(g), Combiner::kMin,
      [&](const Axes& i, const Axes& r) {
        Expr inside;
        const Axes at = window_position(g, x, i, r, inside);
        const Expr value = load(x, at), none = highest(DType::kInt32);
        Expr is_it = eq(value, load(y, i));
        if (is_float(x->dtype)) is_it = logical_or(is_it, unary(UnaryOp::kIsNan, value));
        return select(inside, select(is_it, tap_number(g, r), none), none);
      },
      "taps");
}

// Windows that may hold an element, by dimension: ceil(kernel / stride) of them where no gaps are between
// taps, the last of them first, so that taps ascend.
int64_t windows_around(const WindowGeometry& g, size_t d) {
  return g.dilations[d] == 1 ? (g.kernel[d] + g.strides[d] - 1) / g.strides[d] : g.kernel[d];
}
// Window r of those around element i, and which tap of it the element is.
struct WindowAround {
  Expr number, tap;
  Expr holds;  // is the element a tap of it?
};
WindowAround window_around(const WindowGeometry& g, size_t d, const Expr& i, const Expr& r) {
  const Expr padded = i + g.pads_begin[d], stride = g.strides[d];
  if (g.dilations[d] == 1) {
    const Expr tap = floormod(padded, stride) + r * stride;
    return {floordiv(padded, stride) - r, tap,
            g.kernel[d] % g.strides[d] ? tap < Expr(g.kernel[d]) : bool_imm(true)};
  }
  const Expr from = padded - r * Expr(g.dilations[d]);
  return {floordiv(from, stride), r, eq(floormod(from, stride), Expr(0))};
}

Status infer_max_pool_gradient(InferContext& c) {
  const auto extents = c.attr_extents(kExtents);
  if (!extents || static_cast<int>(extents->size()) != c.rank(0) || c.rank(0) < 3)
    return c.error("dy is " + to_string(c.type(0)) + ": expected extents of as many dimensions");
  auto g = window_geometry(c, *extents, c.attr_ints("kernel_shape"));
  if (!g.ok()) return c.error(g.error().message);
  bool fits = c.rank(1) == c.rank(0) && c.type(1).dtype == DType::kInt32;
  for (int d = 0; fits && d < c.rank(0); ++d)
    fits = c.agree(c.dim(0, d), c.dim(1, d)) &&
           (d < 2 || c.agree(c.dim(0, d), g->out[static_cast<size_t>(d) - 2]));
  if (!fits)
    return c.error("dy is " + to_string(c.type(0)) + ", taps is " + to_string(c.type(1)) +
                   ", which do not fit the windows of " +
                   to_string(TensorType{c.type(0).dtype, *extents}));
  c.set_output(0, c.type(0).dtype, *extents);
  return {};
}
void compute_max_pool_gradient(ComputeContext& c) {
  const WindowGeometry g =
      window_geometry(c, *c.attr_extents(kExtents), c.attr_ints("kernel_shape")).value();
  const Buffer &dy = c.in(0), &taps = c.in(1);
  std::vector<Expr> windows;
  for (size_t d = 0; d < g.kernel.size(); ++d) windows.push_back(windows_around(g, d));
  c.b.reduce(
      c.out(), windows, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Axes at{i[0], i[1]}, tap;
        Expr exists = bool_imm(true);
        for (size_t d = 0; d < g.kernel.size(); ++d) {
          const WindowAround w = window_around(g, d, i[d + 2], r[d]);
          exists = logical_and(
              exists,
              logical_and(w.holds, logical_and(w.number >= Expr(0), w.number < dy->shape[d + 2])));
          at.push_back(w.number);
          tap.push_back(w.tap);
        }
        const Expr none = constant(0, dy->dtype);
        return select(exists, select(eq(load(taps, at), tap_number(g, tap)), load(dy, at), none),
                      none);
      },
      "max_pool_gradient");
}

}  // namespace

const std::vector<OpDef>& pooling_gradient_ops() {
  static const Attributes window{{"kernel_shape", std::vector<int64_t>{3, 2}},
                                 {"pads", std::vector<int64_t>{1, 0, 1, 0}},
                                 {"strides", std::vector<int64_t>{2, 1}}};
  static const std::vector<OpDef> ops{
      {.name = "max_pool_taps",
       .summary =
           "the place in each window of its largest element, y, in row-major order: of equals "
           "the first, or the first NaN",
       .operands = {{"x"}, {"y"}},
       .attributes = kWindowAttributes,
       .fusion = FusionKind::kReduction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .early = true,
       .infer_type = infer_taps,
       .compute = compute_taps,
       .example = {.inputs = {{DType::kFloat32, {1, 3, 9, 9}}, {DType::kFloat32, {1, 3, 5, 8}}},
                   .attributes = window,
                   .values = {{1, 2, 3, 2}, {2, 3}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxPool.html"},
      {.name = "max_pool_gradient",
       .summary = "to each element of x the sum of dy over the windows whose largest it is",
       .operands = {{"dy"}, {"taps"}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back({kExtents, AttributeKind::kExtents, "of x"});
             return a;
           }(),
       .fusion = FusionKind::kReduction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_max_pool_gradient,
       .compute = compute_max_pool_gradient,
       .example = {.inputs = {{DType::kFloat32, {1, 3, 5, 8}}, {DType::kInt32, {1, 3, 5, 8}}},
                   .attributes =
                       [] {
                         Attributes a = window;
                         a[kExtents] = Extents{{Expr(1), Expr(3), Expr(9), Expr(9)}};
                         return a;
                       }(),
                   .values = {{}, {0, 3, 5, 2, 1, 4, 2}}},
       .source = "Griewank and Walther, Evaluating Derivatives, 2008"},
  };
  return ops;
}

}  // namespace tilewright::ir
