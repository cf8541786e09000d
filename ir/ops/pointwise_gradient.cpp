// Where an operator has a bend, its gradient is that of one side, or half of both: PyTorch's choices, so
// that training starts alike.
#include "ir/ops/pointwise_gradient.h"

namespace tilewright::ir {

V greater(V a, double b) { return a.make("greater", {a.id, a.number(b).id}); }
// a^(b-1) * b, but 0 where b is 0; and a^b * log a, 0 where a is not positive.
void gradient_of_pow(GradientContext& c) {
  const V a = c.in(0), b = c.in(1).to(a.dtype()), zero = a.number(0);
  const V slope = b * apply("pow", a, b - 1.0);
  c.add(0, c.dy() * where(apply("equal", b, zero), zero, slope));
  const V is_positive = greater(a, 0);
  const V log = apply("log", where(is_positive, a, a.number(1)));
  c.add(1, c.dy() * where(is_positive, c.out() * log, zero));
}
// The one that was taken; each half where they are equal.
void gradient_of_extreme(GradientContext& c, const char* beyond) {
  const V a = c.in(0), b = c.in(1), dy = c.dy(), zero = dy.number(0), half = dy * 0.5;
  const V equal = apply("equal", a, b);
  c.add(0, where(equal, half, where(apply(beyond, a, b), dy, zero)));
  c.add(1, where(equal, half, where(apply(beyond, b, a), dy, zero)));
}
void gradient_of_relu(GradientContext& c) {
  c.add(0, where(greater(c.out(), 0), c.dy(), c.dy().number(0)));
}
// To x where it is within the bounds, else to the one that was taken: the lower is tried first.
void gradient_of_clip(GradientContext& c) {
  const V x = c.in(0), dy = c.dy(), zero = dy.number(0);
  V of_x = dy;
  V clipped = x;
  if (c.has(1)) {
    const V below = apply("less", x, c.in(1));
    clipped = where(below, c.in(1), x);
    of_x = where(below, zero, of_x);
    V taken = where(below, dy, zero);
    if (c.has(2)) taken = where(apply("greater", clipped, c.in(2)), zero, taken);
    c.add(1, taken);
  }
  if (c.has(2)) {
    const V above = apply("greater", clipped, c.in(2));
    of_x = where(above, zero, of_x);
    c.add(2, where(above, dy, zero));
  }
  c.add(0, of_x);
}
void gradient_of_where(GradientContext& c) {
  const V zero = c.dy().number(0);
  c.add(1, where(c.in(0), c.dy(), zero));
  c.add(2, where(c.in(0), zero, c.dy()));
}
}  // namespace tilewright::ir
