// Convolution with 3x3 windows by Winograd's minimal filtering F(m x m, 3x3): (m + 2)^2 products
// for the m x m results of a tile instead of 9 m^2. m is 2 or 4 (Lavin and Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2016).
//
//    Y = A^T [ (G g G^T) . (B^T d B) ] A     d: tile of m+2 x m+2 inputs, g: 3x3 weights, Y: m x m
//
// The element-wise product, summed over channels, is (m+2)^2 independent GEMMs of [tiles, c] by [c,
// o]: that is where the time goes, and what the schedule tiles. B, A and G are applied to rows and
// columns separately (the transforms are separable). Whether it pays is decided in passes/cost;
// what it does to accuracy, numerics.h says.
#include "ir/ops/winograd.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/winograd_transforms.h"

namespace tilewright::ir {
namespace {

// w: [o, c, 3, 3]
Status infer_weights(InferContext& c) {
  const TensorType& w = c.type(0);
  if (w.dtype != DType::kFloat32 || w.rank() != 4 || as_int(w.dims[2]) != 3 ||
      as_int(w.dims[3]) != 3)
    return c.error("w is " + to_string(w) + ", expected f32[o, c, 3, 3]");
  const int64_t tile = c.attr_int("tile", 4);
  if (tile != 2 && tile != 4) return c.error("tile is " + std::to_string(tile) + ", not 2 or 4");
  const Expr points = tile + 2;
  c.set_output(0, w.dtype, {points, points, w.dims[1], w.dims[0]});
  return {};
}
void compute_weights(ComputeContext& c) {
  const Buffer& w = c.in(0);
  const int64_t points = c.attr_int("tile", 4) + 2;
  Buffer columns =
      c.b.temp("columns", DType::kFloat64, {Expr(points), Expr(3), w->shape[1], w->shape[0]});
  c.b.compute(
      columns,
      [&](const Axes& i) {
        return transform_weights(i[0], points, winograd_values(3, [&](int64_t k) {
                                   return cast(DType::kFloat64,
                                               load(w, {i[3], i[2], Expr(k), i[1]}));
                                 }));
      },
      kWinogradWeightsColumns);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        return cast(DType::kFloat32,
                    transform_weights(i[1], points, winograd_values(3, [&](int64_t k) {
                                        return load(columns, {i[0], Expr(k), i[2], i[3]});
                                      })));
      },
      kWinogradWeightsRows);
}

// x: [n, c, h, w], u: [m + 2, m + 2, c, o]
Status infer_winograd_conv(InferContext& c) {
  const TensorType &x = c.type(0), &u = c.type(1);
  const int64_t points = u.rank() == 4 ? as_int(u.dims[0]).value_or(0) : 0;
  if (x.dtype != DType::kFloat32 || u.dtype != DType::kFloat32 || x.rank() != 4 ||
      (points != 4 && points != 6) || as_int(u.dims[1]) != points ||
      !can_prove_equal(x.dims[1], u.dims[2]))
    return c.error("x is " + to_string(x) + ", u is " + to_string(u) +
                   ": expected f32[n, c, h, w] and f32[p, p, c, o] with p 4 or 6");
  const std::vector<int64_t> pads = pads_of(c);
  if (pads.size() != 4) return c.error("pads are not four");
  std::vector<Expr> dims{x.dims[0], u.dims[3]};
  for (size_t d : {size_t{0}, size_t{1}}) {
    if (pads[d] < 0 || pads[d + 2] < 0) return c.error("negative pads");
    dims.push_back(simplify(x.dims[d + 2] + Expr(pads[d] + pads[d + 2] - 2)));
    if (auto n = as_int(dims.back()); n && *n < 0)
      return c.error("the window is larger than the padded input");
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}

void compute_winograd_conv(ComputeContext& c) {
  const Buffer &x = c.in(0), &u = c.in(1), &y = c.out();
  const std::vector<int64_t> pads = pads_of(c);
  const int64_t points = *as_int(u->shape[0]), tile = points - 2;
  const Expr n = x->shape[0], in_tile = tile, p = points;
  const Expr down = simplify(ceildiv(y->shape[2], tile)),
             across = simplify(ceildiv(y->shape[3], tile));
  const DType t = DType::kFloat32;
  Buffer input = transformed_input(c, {x, pads[0], pads[1], tile}, down, across);
  Buffer products = c.b.temp("products", t, {p, p, n, down, across, u->shape[3]});
  c.b.reduce(
      products, {x->shape[1]}, Combiner::kSum,
      [&](const Axes& i, const Axes& k) {
        return load(input, {i[0], i[1], i[2], i[3], i[4], k[0]}) *
               load(u, {i[0], i[1], k[0], i[5]});
      },
      kWinogradProduct);
  Buffer columns = c.b.temp("columns", t, {in_tile, p, n, down, across, u->shape[3]});
  c.b.compute(
      columns,
      [&](const Axes& i) {
        return transform_output(i[0], winograd_values(points, [&](int64_t k) {
                                  return load(products, {Expr(k), i[1], i[2], i[3], i[4], i[5]});
                                }));
      },
      kWinogradColumns);
  c.b.compute(
      y,
      [&](const Axes& i) {
        return transform_output(
            floormod(i[3], in_tile), winograd_values(points, [&](int64_t k) {
              return load(columns, {floormod(i[2], in_tile), Expr(k), i[0], floordiv(i[2], in_tile),
                                    floordiv(i[3], in_tile), i[1]});
            }));
      },
      kWinogradOutput);
}

}  // namespace

const std::vector<OpDef>& winograd_ops() {
  static const std::vector<OpDef> ops{
      {.name = "winograd_weights",
       .summary = "weights [o, c, 3, 3] in the form of Winograd's F(m x m, 3x3): "
                  "[m + 2, m + 2, c, o]; computed in f64 and rounded once",
       .operands = {{"w"}},
       .attributes = {{"tile", AttributeKind::kInt, "m: 2 or 4; default 4"}},
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_weights,
       .compute = compute_weights,
       .example = {.inputs = {{DType::kFloat32, {7, 5, 3, 3}}}},
       .source = "https://arxiv.org/abs/1509.09308"},
      {.name = "winograd_conv",
       .summary = "convolution of x: [n, c, h, w] with 3x3 windows, stride 1; u are its "
                  "weights by winograd_weights",
       .operands = {{"x"}, {"u"}},
       .attributes = {{"pads", AttributeKind::kInts,
                       "zeros around x: before h, before w, after h, after w; default 0"}},
       .fusion = FusionKind::kContraction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_winograd_conv,
       .compute = compute_winograd_conv,
       .example = {.inputs = {{DType::kFloat32, {2, 5, 9, 11}}, {DType::kFloat32, {6, 6, 5, 7}}},
                   .attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
       .source = "https://arxiv.org/abs/1509.09308"},
  };
  return ops;
}

}  // namespace tilewright::ir
