#include "ir/ops/winograd_transforms.h"

#include "ir/loops/simplify.h"
#include "ir/ops/winograd.h"

namespace tilewright::ir {
namespace {

using Values = WinogradValues;

Expr f32(double value) { return constant(value, DType::kFloat32); }
Expr coefficient(double value) { return constant(value, DType::kFloat64); }

constexpr double kPoint = 0.75, kPoint2 = kPoint * kPoint, kPoint3 = kPoint2 * kPoint,
                 kPoint4 = kPoint2 * kPoint2;

// values[i]
Expr pick(const Expr& i, const Values& values) {
  Expr r = values.back();
  for (size_t k = values.size() - 1; k-- > 0;)
    r = select(eq(i, Expr(static_cast<int64_t>(k))), values[k], r);
  return r;
}
// Of the weights' transform: 1 / (n s^4).
Expr part(double n) { return coefficient(1 / (n * kPoint4)); }

}  // namespace

Values winograd_values(int64_t n, const std::function<Expr(int64_t)>& value) {
  Values v;
  for (int64_t k = 0; k < n; ++k) v.push_back(value(k));
  return v;
}

Expr transform_input(const Expr& i, const Values& d) {
  if (d.size() == 4) return pick(i, {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]});
  const Expr s = f32(kPoint), s2 = f32(2 * kPoint);
  const Expr even = d[4] - f32(4 * kPoint2) * d[2], odd = d[3] - f32(4 * kPoint2) * d[1];
  const Expr near_even = d[4] - f32(kPoint2) * d[2], near_odd = d[3] - f32(kPoint2) * d[1];
  return pick(i, {f32(4 * kPoint4) * d[0] + (d[4] - f32(5 * kPoint2) * d[2]), even + s * odd,
                  even - s * odd, near_even + s2 * near_odd, near_even - s2 * near_odd,
                  f32(4 * kPoint4) * d[1] + (d[5] - f32(5 * kPoint2) * d[3])});
}

Expr transform_output(const Expr& i, const Values& p) {
  const Expr sum1 = p[1] + p[2], difference1 = p[1] - p[2];
  if (p.size() == 4) return pick(i, {p[0] + sum1, difference1 - p[3]});
  const Expr sum2 = p[3] + p[4], difference2 = p[3] - p[4];
  return pick(i, {p[0] + sum1 + sum2, f32(kPoint) * difference1 + f32(2 * kPoint) * difference2,
                  f32(kPoint2) * sum1 + f32(4 * kPoint2) * sum2,
                  f32(kPoint3) * difference1 + p[5] + f32(8 * kPoint3) * difference2});
}

Expr transform_output_gradient(const Expr& i, const Values& y) {
  if (y.size() == 2) return pick(i, {y[0], y[0] + y[1], y[0] - y[1], f32(0) - y[1]});
  const Expr even = y[0] + f32(kPoint2) * y[2], odd = f32(kPoint) * y[1] + f32(kPoint3) * y[3];
  const Expr far_even = y[0] + f32(4 * kPoint2) * y[2],
             far_odd = f32(2 * kPoint) * y[1] + f32(8 * kPoint3) * y[3];
  return pick(i, {y[0], even + odd, even - odd, far_even + far_odd, far_even - far_odd, y[3]});
}

Expr transform_weights(const Expr& i, int64_t points, const Values& w) {
  if (points == 4) {
    const Expr outer = w[0] + w[2];
    return pick(i,
                {w[0], coefficient(0.5) * (outer + w[1]), coefficient(0.5) * (outer - w[1]), w[2]});
  }
  const Expr near = w[0] + coefficient(kPoint2) * w[2],
             far = w[0] + coefficient(4 * kPoint2) * w[2], middle = coefficient(kPoint) * w[1];
  return pick(i, {part(4) * w[0], part(-6) * (near + middle), part(-6) * (near - middle),
                  part(24) * (far + coefficient(2) * middle),
                  part(24) * (far - coefficient(2) * middle), w[2]});
}

Expr transform_weights_gradient(const Expr& i, const Values& u) {
  const Expr sum1 = u[1] + u[2], difference1 = u[1] - u[2];
  if (u.size() == 4) {
    const Expr half = coefficient(0.5) * sum1;
    return pick(i, {u[0] + half, coefficient(0.5) * difference1, half + u[3]});
  }
  const Expr near = part(-6) * sum1, far = part(24) * (u[3] + u[4]);
  return pick(i, {part(4) * u[0] + (near + far),
                  coefficient(kPoint) * (part(-6) * difference1 + part(12) * (u[3] - u[4])),
                  coefficient(kPoint2) * (near + coefficient(4) * far) + u[5]});
}

Expr TiledInput::operator()(const Expr& n, const Expr& channel, const Expr& down, int64_t k,
                            const Expr& column) const {
  const Expr p = down * Expr(tile) + Expr(k - top), q = column - Expr(left);
  Expr inside = q < x->shape[3];
  if (left > 0) inside = logical_and(q >= Expr(0), inside);
  if (k < top) inside = logical_and(p >= Expr(0), inside);
  inside = logical_and(p < x->shape[2], inside);
  return select(inside, load(x, {n, channel, p, q}), f32(0));
}

// Along columns, then along rows: the former is shared by tiles side by side. It covers the padding too.
Buffer transformed_input(ComputeContext& c, const TiledInput& x, const Expr& down,
                         const Expr& across) {
  const DType t = DType::kFloat32;
  const int64_t points = x.tile + 2;
  const Expr n = x.x->shape[0], channels = x.x->shape[1], p = points, tile = x.tile;
  Buffer rows = c.b.temp("rows", t, {p, n, down, simplify(across * tile + 2), channels});
  c.b.compute(
      rows,
      [&](const Axes& i) {
        return transform_input(
            i[0], winograd_values(points, [&](int64_t k) { return x(i[1], i[4], i[2], k, i[3]); }));
      },
      kWinogradRows);
  Buffer input = c.b.temp("input", t, {p, p, n, down, across, channels});
  c.b.compute(
      input,
      [&](const Axes& i) {
        return transform_input(i[1], winograd_values(points, [&](int64_t k) {
                                 return load(rows, {i[0], i[2], i[3], i[4] * tile + Expr(k), i[5]});
                               }));
      },
      kWinogradInput);
  return input;
}

}  // namespace tilewright::ir
