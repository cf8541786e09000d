// Each is written so that its gradient, which follows from the operators, is as stable as itself: no
// exponential that overflows, no logarithm of a rounded sum.
#include "frontends/train/losses.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/check.h"

namespace tilewright::train {

namespace {

using ir::V;

V mean(V x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return ir::reduce("reduce_mean", x, axes, false);
}

ir::TensorType classes(const ir::TensorType& output) {
  ir::TensorType t{DType::kInt64, output.dims};
  if (!t.dims.empty()) t.dims.pop_back();
  return t;
}
ir::TensorType alike(const ir::TensorType& output) { return output; }

// The logarithm at the target, chosen by comparison: the gradient is as plain as the value.
V cross_entropy(V logits, V targets) {
  if (logits.rank() < 2)
    logits.n.fail("logits are " + to_string(logits.n.type(logits.id)) +
                  ", expected [..., classes]");
  const V logarithms = logits.make("log_softmax", {logits.id}, {{"axis", int64_t{-1}}});
  const ir::Expr count = logits.n.type(logits.id).dims.back();
  const V places{
      logits.n,
      logits.n.op("range", {logits.n.scalar(0, DType::kInt64),
                            logits.n.reshape(logits.n.dims({count}), std::vector<int64_t>{}),
                            logits.n.scalar(1, DType::kInt64)})};
  std::vector<ir::Expr> column = logits.n.type(targets.id).dims;
  column.push_back(1);
  const V wanted{logits.n, logits.n.reshape(targets.id, column)};
  const V chosen = ir::where(ir::apply("equal", wanted, places), logarithms, logarithms.number(0));
  return ir::apply("neg", mean(ir::reduce("reduce_sum", chosen, {logits.rank() - 1}, false)));
}
V mean_squares(V output, V targets) {
  const V off = output - targets;
  return mean(off * off);
}
// max(x, 0) - x * t + log(1 + exp(-|x|)): no exponential overflows.
V logistic(V x, V t) {
  const V least = x * t,
          soft = ir::apply("log1p", ir::apply("exp", ir::apply("neg", ir::apply("abs", x))));
  return mean(ir::apply("relu", x) - least + soft);
}
V own(V output, V) { return mean(output); }

V has_largest_logit(V logits, V targets) {
  const V best = logits.make("arg_max", {logits.id},
                             {{"axis", int64_t{logits.rank() - 1}}, {"keepdims", int64_t{0}}});
  return ir::apply("equal", best, targets);
}
V is_on_its_side(V x, V t) {
  return ir::apply("equal", ir::apply("greater", x, x.number(0)),
                   ir::apply("greater", t, t.number(0.5)));
}

constexpr Loss kLosses[] = {{"cross_entropy", true, classes, cross_entropy, has_largest_logit},
                            {"mean_squares", true, alike, mean_squares, nullptr},
                            {"logistic", true, alike, logistic, is_on_its_side},
                            {"output", false, alike, own, nullptr}};

}  // namespace

const Loss& find_loss(std::string_view name) {
  const auto* it = std::find_if(std::begin(kLosses), std::end(kLosses),
                                [&](const Loss& l) { return l.name == name; });
  TW_CHECK(it != std::end(kLosses));
  return *it;
}

}  // namespace tilewright::train
