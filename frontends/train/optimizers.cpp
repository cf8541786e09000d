// Sources: the algorithms in the documentation of torch.optim, which cites the papers. Parentheses
// are PyTorch's, so that results differ by no more than roundings.
#include "frontends/train/optimizers.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace tilewright::train {

namespace {

using ir::V;
using States = std::vector<V>;
using Names = std::vector<std::string_view>;

V decayed(const OptimizerJob& o, const Rates& r, V p, V g) {
  return o.weight_decay == 0 ? g : g + p * r.decay;
}
V root(V x) { return ir::apply("sqrt", x); }
// Moving average: a * decay + b * (1 - decay).
V average(V a, V b, double decay) { return a * decay + b * (1 - decay); }

Update sgd(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  g = decayed(o, r, p, g);
  if (o.momentum == 0) return {p - g * r.lr, {}};
  const V momentum = s[0] * o.momentum + g;
  return {p - (o.nesterov ? g + momentum * o.momentum : momentum) * r.lr, {momentum}};
}
Update adagrad(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  g = decayed(o, r, p, g);
  const V sum = s[0] + g * g;
  return {p - g / (root(sum) + o.eps) * r.lr, {sum}};
}
Update rmsprop(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  g = decayed(o, r, p, g);
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
struct Averages {
  V mean, square;
};
Averages averages(const OptimizerJob& o, V g, const States& s) {
  return {average(s[0], g, o.betas[0]), average(s[1], g * g, o.betas[1])};
}
V scale(const OptimizerJob& o, const Rates& r, V square) {
  return root(square * correction(r, o.betas[1])) + o.eps;
}
Update adam_step(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  const auto [mean, square] = averages(o, g, s);
  return {p - mean * (r.lr * correction(r, o.betas[0])) / scale(o, r, square), {mean, square}};
}
Update adam(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  return adam_step(o, r, p, decayed(o, r, p, g), s);
}
// Decay apart from the gradients (Loshchilov and Hutter, 2019).
Update adamw(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  if (o.weight_decay != 0) p = p * (1.0 - r.lr * r.decay);
  return adam_step(o, r, p, g, s);
}

// By element of the buffer: one value for each member, f32 [members].
V spread(const Parameters& members, V values) {
  std::vector<int32_t> member(static_cast<size_t>(members.elements));
  for (size_t k = 0; k < members.members.size(); ++k)
    std::fill_n(member.begin() + members.members[k].offset, members.members[k].elements,
                static_cast<int32_t>(k));
  const ir::ValueId which =
      values.n.constant(ir::make_constant_of(DType::kInt32, {members.elements}, member));
  return values.make("gather", {values.id, which}, {{"clamps", int64_t{1}}});
}
// The norm of each member, f32 [members].
V norms(const Parameters& members, V flat) {
  std::vector<ir::ValueId> all;
  for (const Parameter& p : members.members) {
    const V x{flat.n, flat.n.slice(flat.id, 0, p.offset, p.offset + p.elements)};
    all.push_back(root(ir::reduce("reduce_sum", x * x, {0})).id);
  }
  return {flat.n, flat.n.op("concat", std::move(all), {{"axis", int64_t{0}}})};
}
// Each parameter goes as far as its own norm says (You et al., "Large Batch Optimization for Deep
// Learning", 2020): algorithm 2 with norms as they are (phi(z) = z).
Update lamb(const OptimizerJob& o, const Rates& r, V p, V g, const States& s) {
  const auto [mean, square] = averages(o, g, s);
  const V change = decayed(o, r, p, mean * correction(r, o.betas[0]) / scale(o, r, square));
  const V length = norms(r.members, p), by = norms(r.members, change), one = by.number(1),
          none = by.number(0), moves = ir::apply("greater", length * by, none);
  const V trust = ir::where(moves, length / ir::where(moves, by, one), one);
  return {p - change * spread(r.members, trust) * r.lr, {mean, square}};
}

Names momentum_if(const OptimizerJob& o) { return o.momentum == 0 ? Names{} : Names{"momentum"}; }
Names square_and_momentum(const OptimizerJob& o) {
  return o.momentum == 0 ? Names{"square"} : Names{"square", "momentum"};
}
Names mean_and_square(const OptimizerJob&) { return {"mean", "square"}; }

constexpr Optimizer kOptimizers[] = {
    {"sgd", momentum_if, sgd, ""},
    {"adagrad", [](const OptimizerJob&) { return Names{"sum"}; }, adagrad, "sum"},
    {"rmsprop", square_and_momentum, rmsprop, "square"},
    {"adam", mean_and_square, adam, "square"},
    {"adamw", mean_and_square, adamw, "square"},
    {"lamb", mean_and_square, lamb, "square"},
};

}  // namespace

Result<V> decay_of(ir::NodeBuilder& n, const OptimizerJob& job, const Parameters& members) {
  if (job.no_decay.empty()) return V{n, n.scalar(job.weight_decay, DType::kFloat32)};
  std::vector<float> decay(static_cast<size_t>(members.elements),
                           static_cast<float>(job.weight_decay));
  for (const std::string& pattern : job.no_decay) {
    bool used = false;
    for (const Parameter& p : members.members) {
      if (!matches(pattern, p.name)) continue;
      used = true;
      std::fill_n(decay.begin() + p.offset, p.elements, 0.0f);
    }
    if (!used) return invalid("no parameter matches '" + pattern + "' of optimizer.no_decay");
  }
  return V{n, n.constant(ir::make_constant_of(DType::kFloat32, {members.elements}, decay))};
}

const Optimizer& find_optimizer(std::string_view name) {
  const auto* it = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                [&](const Optimizer& o) { return o.name == name; });
  TW_CHECK(it != std::end(kOptimizers));
  return *it;
}

}  // namespace tilewright::train
