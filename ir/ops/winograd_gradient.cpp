// The gradient of a convolution with 3x3 windows by its weights, by the transpose of Winograd's form
// (winograd.cpp): that is linear in its weights g, so that
//
//    dg = G^T [ (A dY A^T) . (B^T d B) ] G      summed over all tiles of all images
//
// with the same matrices. The element-wise product is (m + 2)^2 independent GEMMs of [c, tiles] by
// [tiles, o], of (m + 2)^2 multiply-adds a tile instead of 9 m^2.
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/winograd.h"
#include "ir/ops/winograd_transforms.h"

namespace tilewright::ir {
namespace {

Status infer(InferContext& c) {
  const TensorType &dy = c.type(0), &x = c.type(1);
  const std::vector<int64_t> pads = pads_of(c);
  const int64_t tile = c.attr_int("tile", 4);
  if (dy.dtype != DType::kFloat32 || x.dtype != dy.dtype || dy.rank() != 4 || x.rank() != 4)
    return c.error("dy is " + to_string(dy) + ", x is " + to_string(x) +
                   ": expected f32[n, o, out h, out w] and f32[n, c, h, w]");
  if (tile != 2 && tile != 4) return c.error("tile is " + std::to_string(tile) + ", not 2 or 4");
  if (pads.size() != 4) return c.error("pads are not four");
  bool fits = c.agree(dy.dims[0], x.dims[0]);
  for (size_t d : {size_t{0}, size_t{1}}) {
    if (pads[d] < 0 || pads[d + 2] < 0) return c.error("negative pads");
    fits &= c.agree(dy.dims[d + 2], simplify(x.dims[d + 2] + Expr(pads[d] + pads[d + 2] - 2)));
  }
  if (!fits)
    return c.error("dy is " + to_string(dy) + ", which is no result of x, " + to_string(x));
  c.set_output(0, x.dtype, {dy.dims[1], x.dims[1], 3, 3});
  return {};
}

// dy in tiles of m places, transformed along both: [m + 2, m + 2, n, down, across, o].
Buffer transformed_results(ComputeContext& c, const TiledInput& dy, const Expr& down,
                           const Expr& across) {
  const DType t = DType::kFloat32;
  const Expr n = dy.x->shape[0], channels = dy.x->shape[1], p = dy.tile + 2, tile = dy.tile;
  Buffer rows = c.b.temp("dy_rows", t, {p, n, down, simplify(across * tile), channels});
  c.b.compute(
      rows,
      [&](const Axes& i) {
        return transform_output_gradient(i[0], winograd_values(dy.tile, [&](int64_t k) {
                                           return dy(i[1], i[4], i[2], k, i[3]);
                                         }));
      },
      kWinogradGradientRows);
  Buffer results = c.b.temp("dy_tiles", t, {p, p, n, down, across, channels});
  c.b.compute(
      results,
      [&](const Axes& i) {
        return transform_output_gradient(
            i[1], winograd_values(dy.tile, [&](int64_t k) {
              return load(rows, {i[0], i[2], i[3], i[4] * tile + Expr(k), i[5]});
            }));
      },
      kWinogradGradientInput);
  return results;
}

void compute(ComputeContext& c) {
  const Buffer &dy = c.in(0), &x = c.in(1), &dw = c.out();
  const std::vector<int64_t> pads = pads_of(c);
  const int64_t tile = c.attr_int("tile", 4), points = tile + 2;
  const Expr n = x->shape[0], p = points, down = simplify(ceildiv(dy->shape[2], tile)),
             across = simplify(ceildiv(dy->shape[3], tile)), ins = x->shape[1], outs = dy->shape[1];
  const Buffer input = transformed_input(c, {x, pads[0], pads[1], tile}, down, across),
               results = transformed_results(c, {dy, 0, 0, tile}, down, across);
  Buffer products = c.b.temp("products", DType::kFloat32, {p, p, ins, outs});
  c.b.reduce(
      products, {n, down, across}, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        return load(input, {i[0], i[1], r[0], r[1], r[2], i[2]}) *
               load(results, {i[0], i[1], r[0], r[1], r[2], i[3]});
      },
      kWinogradGradientProduct);
  Buffer columns = c.b.temp("dw_columns", DType::kFloat64, {3, p, ins, outs});
  c.b.compute(
      columns,
      [&](const Axes& i) {
        return transform_weights_gradient(
            i[0], winograd_values(points, [&](int64_t k) {
              return cast(DType::kFloat64, load(products, {Expr(k), i[1], i[2], i[3]}));
            }));
      },
      kWinogradGradientColumns);
  c.b.compute(
      dw,
      [&](const Axes& i) {
        return cast(DType::kFloat32,
                    transform_weights_gradient(i[3], winograd_values(points, [&](int64_t k) {
                                                 return load(columns, {i[2], Expr(k), i[1], i[0]});
                                               })));
      },
      kWinogradGradientOutput);
}

}  // namespace

const std::vector<OpDef>& winograd_gradient_ops() {
  static const std::vector<OpDef> ops{
      {.name = "winograd_weights_gradient",
       .summary = "the derivative by the 3x3 weights of a convolution with stride 1, [o, c, 3, 3], "
                  "from that by its results and its operand",
       .operands = {{"dy"}, {"x"}},
       .attributes = {{"tile", AttributeKind::kInt, "m: 2 or 4; default 4"},
                      {"pads", AttributeKind::kInts,
                       "zeros around x: before h, before w, after h, after w; default 0"}},
       .fusion = FusionKind::kOpaque,
       .channels = Channels::kOperandsInnermost,
       .reads_stored = true,
       .infer_type = infer,
       .compute = compute,
       .example = {.inputs = {{DType::kFloat32, {2, 7, 9, 11}}, {DType::kFloat32, {2, 5, 9, 11}}},
                   .attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
       .source = "https://arxiv.org/abs/1509.09308"},
  };
  return ops;
}

}  // namespace tilewright::ir
