// Sources: the algorithms in the documentation of torch.optim, which cites the papers. Parentheses
// are PyTorch's, so that results differ by no more than roundings.
#include "frontends/train/optimizers.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace tilewright::train {

namespace {

using ir::V;
using State = std::vector<V>;
using Names = std::vector<std::string_view>;

V decayed(const OptimizerJob& o, V p, V g) {
  return o.weight_decay == 0 ? g : g + p * o.weight_decay;
}
V root(V x) { return ir::apply("sqrt", x); }
// Moving average: a * decay + b * (1 - decay).
V average(V a, V b, double decay) { return a * decay + b * (1 - decay); }

Update sgd(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  g = decayed(o, p, g);
  if (o.momentum == 0) return {p - g * r.lr, {}};
  const V momentum = s[0] * o.momentum + g;
  return {p - (o.nesterov ? g + momentum * o.momentum : momentum) * r.lr, {momentum}};
}
Update adagrad(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  g = decayed(o, p, g);
  const V sum = s[0] + g * g;
  return {p - g / (root(sum) + o.eps) * r.lr, {sum}};
}
Update rmsprop(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  g = decayed(o, p, g);
  const V square = average(s[0], g * g, o.alpha);
  const V change = g / (root(square) + o.eps);
  if (o.momentum == 0) return {p - change * r.lr, {square}};
  const V momentum = s[1] * o.momentum + change;
  return {p - momentum * r.lr, {square, momentum}};
}
// Averages begin at 0: 1 / (1 - decay^t) times one is what it would be of t steps alone.
V correction(const Rates& r, double decay) {
  const V t = r.step.to(DType::kFloat64) + 1;
  return (1.0 / (1.0 - ir::apply("pow", t.number(decay), t))).to(DType::kFloat32);
}
Update adam_step(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  const V mean = average(s[0], g, o.betas[0]), square = average(s[1], g * g, o.betas[1]);
  const V scale = root(square * correction(r, o.betas[1])) + o.eps;
  return {p - mean * (r.lr * correction(r, o.betas[0])) / scale, {mean, square}};
}
Update adam(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  return adam_step(o, r, p, decayed(o, p, g), s);
}
// Decay apart from the gradients (Loshchilov and Hutter, 2019).
Update adamw(const OptimizerJob& o, const Rates& r, V p, V g, const State& s) {
  if (o.weight_decay != 0) p = p * (1.0 - r.lr * o.weight_decay);
  return adam_step(o, r, p, g, s);
}

Names momentum_if(const OptimizerJob& o) { return o.momentum == 0 ? Names{} : Names{"momentum"}; }
Names square_and_momentum(const OptimizerJob& o) {
  return o.momentum == 0 ? Names{"square"} : Names{"square", "momentum"};
}
Names mean_and_square(const OptimizerJob&) { return {"mean", "square"}; }

constexpr Optimizer kOptimizers[] = {
    {"sgd", momentum_if, sgd},
    {"adagrad", [](const OptimizerJob&) { return Names{"sum"}; }, adagrad},
    {"rmsprop", square_and_momentum, rmsprop},
    {"adam", mean_and_square, adam},
    {"adamw", mean_and_square, adamw},
};

}  // namespace

const Optimizer& find_optimizer(std::string_view name) {
  const auto* it = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                [&](const Optimizer& o) { return o.name == name; });
  TW_CHECK(it != std::end(kOptimizers));
  return *it;
}

}  // namespace tilewright::train
