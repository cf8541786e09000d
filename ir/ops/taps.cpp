#include "ir/ops/taps.h"

#include "ir/ops/indices.h"

namespace tilewright::ir {
namespace {

// Where v lies among the mirror images of [low, high].
struct Mirrored {
  explicit Mirrored(const Borders& b, const Expr& v) : below(v < b.low), beyond(v > b.high) {
    const DType t = v.dtype();
    const Expr range = b.high - b.low, none = constant(0, t), is_point = eq(range, none);
    const Expr distance = select(below, b.low - v, v - b.high);
    const Expr turns = unary(UnaryOp::kTrunc, distance / select(is_point, constant(1, t), range));
    rest = select(is_point, none, distance - turns * range);
    const Expr even = eq(binary(BinaryOp::kFloorMod, turns, constant(2, t)), none);
    from_low = eq(even, below);
  }
  Expr below, beyond, rest, from_low;
};

}  // namespace

Expr Borders::reflect(const Expr& v) const {
  const Mirrored m(*this, v);
  return select(logical_or(m.below, m.beyond), select(m.from_low, low + m.rest, high - m.rest), v);
}
Expr Borders::reflect_slope(const Expr& v) const {
  const Mirrored m(*this, v);
  const Expr one = constant(1, v.dtype());
  return select(logical_and(logical_or(m.below, m.beyond), eq(m.from_low, m.below)), -one, one);
}

Expr border_index(const Borders& b, const Expr& at, Expr& inside) {
  const Expr last = b.extent - 1;
  if (b.padding == "border") return clamp(at, 0, last);
  if (b.padding == "reflection")
    return clamp(cast(DType::kInt64, b.reflect(cast(b.low.dtype(), at))), 0, last);
  inside = logical_and(inside, logical_and(at >= Expr(0), at < b.extent));
  return at;
}

// Cubic: Keys' kernel with a = -0.75, as ONNX's and PyTorch's.
std::vector<Expr> tap_weights(const std::string& mode, const Expr& part) {
  const DType t = part.dtype();
  auto number = [t](double v) { return constant(v, t); };
  const Expr one = number(1);
  if (mode == "linear") return {one - part, part};
  const double a = -0.75;
  auto near = [&](const Expr& x) { return (number(a + 2) * x - number(a + 3)) * x * x + one; };
  auto far = [&](const Expr& x) {
    return ((number(a) * x - number(5 * a)) * x + number(8 * a)) * x - number(4 * a);
  };
  return {far(part + one), near(part), near(one - part), far(number(2) - part)};
}
// Of the same polynomials; those on the other side of the position grow as it moves away.
std::vector<Expr> tap_slopes(const std::string& mode, const Expr& part) {
  const DType t = part.dtype();
  auto number = [t](double v) { return constant(v, t); };
  const Expr one = number(1);
  if (mode == "linear") return {-one, one};
  const double a = -0.75;
  auto near = [&](const Expr& x) { return (number(3 * (a + 2)) * x - number(2 * (a + 3))) * x; };
  auto far = [&](const Expr& x) {
    return (number(3 * a) * x - number(10 * a)) * x + number(8 * a);
  };
  return {far(part + one), near(part), -near(one - part), -far(number(2) - part)};
}

Expr GridSample::sum(size_t d, const Axes& p, Axes at, Expr inside) const {
  if (d == borders.size()) return cast(t, select(inside, load(x, at), constant(0, x->dtype)));
  Expr low = unary(UnaryOp::kFloor, p[d]);
  const Expr first = cast(DType::kInt64, low);
  const std::vector<Expr> by =
      mode == "nearest" ? std::vector<Expr>{Expr()} : weights(d, p[d] - low);
  Expr result;
  for (size_t k = 0; k < by.size(); ++k) {
    Expr here = inside;
    at.push_back(border_index(
        borders[d], first + Expr(static_cast<int64_t>(k)) - Expr(mode == "cubic" ? 1 : 0), here));
    Expr term = sum(d + 1, p, at, here);
    at.pop_back();
    if (by[k]) term = by[k] * term;
    result = result ? result + term : term;
  }
  return result;
}

}  // namespace tilewright::ir
