// Convolution with 3x3 windows by Winograd's minimal filtering F(4x4, 3x3): 36 products for the 16
// results of a tile instead of 144.
#include <array>

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/winograd.h"

namespace tilewright::ir {
namespace {

using Points = std::array<Expr, kWinogradPoints>;  // elements of a row or column of a tile

Expr number(double value) { return constant(value, DType::kFloat32); }

// values[i]
template <size_t kCount>
Expr pick(const Expr& i, const std::array<Expr, kCount>& values) {
  Expr r = values[kCount - 1];
  for (size_t k = kCount - 1; k-- > 0;)
    r = select(eq(i, Expr(static_cast<int64_t>(k))), values[k], r);
  return r;
}

// Element i of B^T d.
Expr transform_input(const Expr& i, const Points& d) {
  const Expr even = d[4] - number(4) * d[2], odd = d[3] - number(4) * d[1];
  const Expr near_even = d[4] - d[2], near_odd = d[3] - d[1];
  return pick<6>(i, {number(4) * d[0] + (d[4] - number(5) * d[2]), even + odd, even - odd,
                     near_even + number(2) * near_odd, near_even - number(2) * near_odd,
                     number(4) * d[1] + (d[5] - number(5) * d[3])});
}
// Element i of A^T m.
Expr transform_output(const Expr& i, const Points& m) {
  const Expr sum1 = m[1] + m[2], difference1 = m[1] - m[2];
  const Expr sum2 = m[3] + m[4], difference2 = m[3] - m[4];
  return pick<4>(i, {m[0] + sum1 + sum2, difference1 + number(2) * difference2,
                     sum1 + number(4) * sum2, difference1 + number(8) * difference2 + m[5]});
}
// Element i of G w.
Expr transform_weights(const Expr& i, const Expr& w0, const Expr& w1, const Expr& w2) {
  auto number = [](double value) { return constant(value, DType::kFloat64); };
  const Expr outer = w0 + w2, far = w0 + number(4) * w2;
  return pick<6>(i, {number(1.0 / 4) * w0, number(-1.0 / 6) * (outer + w1),
                     number(-1.0 / 6) * (outer - w1), number(1.0 / 24) * (far + number(2) * w1),
                     number(1.0 / 24) * (far - number(2) * w1), w2});
}

// w: [o, c, 3, 3]
Status infer_weights(InferContext& c) {
  const TensorType& w = c.type(0);
  if (w.dtype != DType::kFloat32 || w.rank() != 4 || as_int(w.dims[2]) != 3 ||
      as_int(w.dims[3]) != 3)
    return c.error("w is " + to_string(w) + ", expected f32[o, c, 3, 3]");
  c.set_output(0, w.dtype, {Expr(kWinogradPoints), Expr(kWinogradPoints), w.dims[1], w.dims[0]});
  return {};
}
void compute_weights(ComputeContext& c) {
  const Buffer& w = c.in(0);
  Buffer columns = c.b.temp("columns", DType::kFloat64,
                            {Expr(kWinogradPoints), Expr(3), w->shape[1], w->shape[0]});
  c.b.compute(
      columns,
      [&](const Axes& i) {
        auto at = [&](int64_t k) {
          return cast(DType::kFloat64, load(w, {i[3], i[2], Expr(k), i[1]}));
        };
        return transform_weights(i[0], at(0), at(1), at(2));
      },
      "weights_columns");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        auto at = [&](int64_t k) { return load(columns, {i[0], Expr(k), i[2], i[3]}); };
        return cast(DType::kFloat32, transform_weights(i[1], at(0), at(1), at(2)));
      },
      "weights_rows");
}

std::vector<int64_t> pads_of(const NodeView& c) {
  return c.attr_ints("pads", std::vector<int64_t>(4, 0));
}
// x: [n, c, h, w], u: [6, 6, c, o]
Status infer_conv(InferContext& c) {
  const TensorType &x = c.type(0), &u = c.type(1);
  if (x.dtype != DType::kFloat32 || u.dtype != DType::kFloat32 || x.rank() != 4 || u.rank() != 4 ||
      as_int(u.dims[0]) != kWinogradPoints || as_int(u.dims[1]) != kWinogradPoints ||
      !can_prove_equal(x.dims[1], u.dims[2]))
    return c.error("x is " + to_string(x) + ", u is " + to_string(u) +
                   ": expected f32[n, c, h, w] and f32[6, 6, c, o]");
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

// x at a place of the padded input; what is not inside is 0. `top`, `left`: pads before x; `row` is
// known to lie in [row_low, row_high].
struct PaddedInput {
  const Buffer& x;
  int64_t top, left;
  Expr tiles_down;
  Expr operator()(const Expr& n, const Expr& channel, const Expr& tile, int64_t k,
                  const Expr& column) const {
    const Expr p = tile * Expr(kWinogradTile) + Expr(k - top), q = column - Expr(left);
    const Expr last = simplify((tiles_down - 1) * Expr(kWinogradTile) + Expr(k - top));
    Expr inside = q < x->shape[3];
    if (left > 0) inside = logical_and(q >= Expr(0), inside);
    if (k < top) inside = logical_and(p >= Expr(0), inside);
    if (!can_prove(last < x->shape[2])) inside = logical_and(p < x->shape[2], inside);
    return select(inside, load(x, {n, channel, p, q}), number(0));
  }
};

// The transforms go along columns, then along rows. Of the input the first one is shared by tiles
// side by side; it covers the padding too.
void compute_conv(ComputeContext& c) {
  const Buffer &x = c.in(0), &u = c.in(1), &y = c.out();
  const std::vector<int64_t> pads = pads_of(c);
  const Expr n = x->shape[0], points = kWinogradPoints, tile = kWinogradTile;
  const Expr down = simplify(ceildiv(y->shape[2], kWinogradTile)),
             across = simplify(ceildiv(y->shape[3], kWinogradTile));
  const DType t = DType::kFloat32;
  Buffer rows = c.b.temp("rows", t, {points, n, down, simplify(across * tile + 2), x->shape[1]});
  const PaddedInput padded{x, pads[0], pads[1], down};
  c.b.compute(
      rows,
      [&](const Axes& i) {
        Points d;
        for (size_t k = 0; k < d.size(); ++k)
          d[k] = padded(i[1], i[4], i[2], static_cast<int64_t>(k), i[3]);
        return transform_input(i[0], d);
      },
      kWinogradRows);
  Buffer input = c.b.temp("input", t, {points, points, n, down, across, x->shape[1]});
  c.b.compute(
      input,
      [&](const Axes& i) {
        Points d;
        for (size_t k = 0; k < d.size(); ++k)
          d[k] = load(rows, {i[0], i[2], i[3], i[4] * tile + Expr(static_cast<int64_t>(k)), i[5]});
        return transform_input(i[1], d);
      },
      kWinogradInput);
  Buffer products = c.b.temp("products", t, {points, points, n, down, across, u->shape[3]});
  c.b.reduce(
      products, {x->shape[1]}, Combiner::kSum,
      [&](const Axes& i, const Axes& k) {
        return load(input, {i[0], i[1], i[2], i[3], i[4], k[0]}) *
               load(u, {i[0], i[1], k[0], i[5]});
      },
      kWinogradProduct);
  Buffer columns = c.b.temp("columns", t, {tile, points, n, down, across, u->shape[3]});
  c.b.compute(
      columns,
      [&](const Axes& i) {
        Points m;
        for (size_t k = 0; k < m.size(); ++k)
          m[k] = load(products, {Expr(static_cast<int64_t>(k)), i[1], i[2], i[3], i[4], i[5]});
        return transform_output(i[0], m);
      },
      kWinogradColumns);
  c.b.compute(
      y,
      [&](const Axes& i) {
        Points m;
        for (size_t k = 0; k < m.size(); ++k)
          m[k] = load(columns, {floormod(i[2], tile), Expr(static_cast<int64_t>(k)), i[0],
                                floordiv(i[2], tile), floordiv(i[3], tile), i[1]});
        return transform_output(floormod(i[3], tile), m);
      },
      kWinogradOutput);
}

}  // namespace

const std::vector<OpDef>& winograd_ops() {
  static const std::vector<OpDef> ops{
      {.name = "winograd_weights",
       .summary = "weights [o, c, 3, 3] in the form of Winograd's F(4x4, 3x3): [6, 6, c, o]; "
                  "computed in f64 and rounded once",
       .operands = {{"w"}},
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_weights,
       .compute = compute_weights,
       .example = {.inputs = {{DType::kFloat32, {7, 5, 3, 3}}}},
       .source = "https://arxiv.org/abs/1509.09308"},
      {.name = "winograd_conv",
       .summary = "convolution of x: [n, c, h, w] with 3x3 windows, stride 1, by tiles of 4x4 "
                  "results; u are its weights by winograd_weights",
       .operands = {{"x"}, {"u"}},
       .attributes = {{"pads", AttributeKind::kInts,
                       "zeros around x: before h, before w, after h, after w; default 0"}},
       .fusion = FusionKind::kContraction,
       .infer_type = infer_conv,
       .compute = compute_conv,
       .example = {.inputs = {{DType::kFloat32, {2, 5, 9, 11}}, {DType::kFloat32, {6, 6, 5, 7}}},
                   .attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
       .source = "https://arxiv.org/abs/1509.09308"},
  };
  return ops;
}

}  // namespace tilewright::ir
