// What gradients of recurrent layers are made of: the steps backwards (recurrent_gradient.cpp), and one
// product over all steps for the recurrent weights.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/recurrent_gradient.h"

namespace tilewright::ir {
namespace {

// Operands of the layers, as recurrent.cpp has them.
constexpr int kLayerH = 2, kLayerLens = 3, kLayerC = 4, kLayerPeepholes = 5, kLayerBias = 4;

ValueId operand(const GradientContext& c, int i) {
  return c.has(i) ? c.view().node().inputs[static_cast<size_t>(i)] : kNone;
}
// The state before each step, [s, b, h]: of the step before, or the initial one (0 where absent).
V states_before(GradientContext& c, V states, int initial) {
  const NodeView node = c.view();
  const std::vector<Expr> dims = c.type(states.id).dims;
  std::vector<Expr> one = dims;
  one[0] = 1;
  const V first = c.has(initial) ? V{c, c.reshape(c.in(initial).id, one)}
                                 : states.make("expand", {states.number(0).id, c.dims(one)});
  const bool reverse = node.attr_int("reverse") != 0;
  const auto cut = [&](const Expr& from, const Expr& to) {
    return states.make("slice", {states.id, c.dims({from}), c.dims({to}), c.ints({0})});
  };
  const V shifted = reverse ? cut(1, dims[0]) : cut(0, simplify(dims[0] - 1));
  const V joined = reverse ? states.make("concat", {shifted.id, first.id}, {{"axis", int64_t{0}}})
                           : states.make("concat", {first.id, shifted.id}, {{"axis", int64_t{0}}});
  if (!reverse || !c.has(kLayerLens)) return joined;
  // The first step of a sequence in reverse lies at its own end.
  const V step = states.make(
      "range", {c.scalar(0, DType::kInt64), c.reshape(c.dims({dims[0]}), std::vector<int64_t>{}),
                c.scalar(1, DType::kInt64)});
  const V at{c, c.reshape(step.id, std::vector<Expr>{dims[0], 1, 1})};
  const V lens{c,
               c.reshape(c.in(kLayerLens).to(DType::kInt64).id, std::vector<Expr>{1, dims[1], 1})};
  return where(apply("greater_equal", at + 1.0, lens), first, joined);
}
// All steps of all sequences as rows.
V rows(GradientContext& c, V v) {
  const std::vector<Expr> dims = c.type(v.id).dims;
  return {c, c.reshape(v.id, std::vector<Expr>{simplify(dims[0] * dims[1]), dims[2]})};
}
V product(GradientContext& c, V a, V b) {  // over all steps
  return a.make("matmul", {rows(c, a).id, rows(c, b).id}, {{"trans_a", int64_t{1}}});
}
// Part k of the last dimension, `width` wide.
V part(GradientContext& c, V v, int64_t from, int64_t to) {
  return {c, c.slice(v.id, v.rank() - 1, from, to)};
}
Attributes attributes_of(const GradientContext& c) {
  Attributes a = c.view().node().attributes;
  a.erase("quantize_state");
  return a;
}
ValueId dy_of(GradientContext& c, int result) { return c.has_dy(result) ? c.dy(result).id : kNone; }

}  // namespace

void gradient_of_rnn(GradientContext& c) {
  const V entered = c.out(2);
  const auto d = c.ops("rnn_steps_gradient",
                       {entered.id, c.in(1).id, c.dy(0).id, dy_of(c, 1), operand(c, kLayerLens)},
                       attributes_of(c), 2);
  c.add(0, {c, d[0]});
  c.add(1, product(c, states_before(c, c.out(0), kLayerH), {c, d[0]}));
  c.add(kLayerH, {c, d[1]});
}

void gradient_of_gru(GradientContext& c) {
  const V entered = c.out(2), inner = c.out(3), states = states_before(c, c.out(0), kLayerH);
  const bool reset_after = c.view().attr_int("linear_before_reset") != 0;
  const int64_t h = as_int(c.view().dim(1, 0)).value_or(0);
  const auto d = c.ops("gru_steps_gradient",
                       {entered.id, c.in(1).id, c.dy(0).id, dy_of(c, 1), operand(c, kLayerLens),
                        states.id, inner.id},
                       attributes_of(c), 3);
  const V dz{c, d[0]}, dinner{c, d[2]};
  c.add(0, dz);
  const V of_gates = product(c, states, part(c, dz, 0, 2 * h));
  const V of_inner = product(c, reset_after ? states : inner, dinner);
  c.add(1, dz.make("concat", {of_gates.id, of_inner.id}, {{"axis", int64_t{1}}}));
  c.add(kLayerH, {c, d[1]});
  if (c.wants(kLayerBias)) c.add(kLayerBias, reduce("reduce_sum", dinner, {0, 1}, false));
}

void gradient_of_lstm(GradientContext& c) {
  if (c.has(6) || c.has(7) || c.view().attr_int("quantize_state"))
    c.fail("8-bit weights have no gradient");
  const V entered = c.out(3), cells = c.out(4);
  const auto d = c.ops("lstm_steps_gradient",
                       {entered.id, c.in(1).id, c.dy(0).id, dy_of(c, 1), operand(c, kLayerLens),
                        cells.id, dy_of(c, 2), operand(c, kLayerC), operand(c, kLayerPeepholes)},
                       attributes_of(c), 3);
  const V dz{c, d[0]};
  c.add(0, dz);
  c.add(1, product(c, states_before(c, c.out(0), kLayerH), dz));
  c.add(kLayerH, {c, d[1]});
  c.add(kLayerC, {c, d[2]});
  if (!c.wants(kLayerPeepholes)) return;
  const int64_t h = as_int(c.view().dim(1, 0)).value_or(0);
  const V before = states_before(c, cells, kLayerC);
  std::vector<ValueId> parts;
  for (int k = 0; k < 3; ++k)
    parts.push_back(reduce("reduce_sum",
                           part(c, dz, k * h, (k + 1) * h) * (k == 1 ? cells : before), {0, 1},
                           false)
                        .id);
  c.add(kLayerPeepholes, dz.make("concat", std::move(parts), {{"axis", int64_t{0}}}));
}

}  // namespace tilewright::ir
