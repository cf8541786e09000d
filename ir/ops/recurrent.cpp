// Recurrent layers of one direction. The product of the inputs with their weights is taken before,
// for all steps at once; what is left for a step is the product of the state with the recurrent
// weights, and pointwise work.
//
//    RNN   h = f(x_t + h R)
//    GRU   z, r = s(...), n = g(x_t + r . (h R_n)) or g(x_t + (r . h) R_n), h = (1-z) n + z h
//    LSTM  i, o, f, g = ..., c = f . c + i . g, h = o . tanh(c)
//
// where x_t, the projected input, comes with its bias from one GEMM over all steps (the usual
// split, as in cuDNN and oneDNN). The recurrent GEMM is [b, h] by [h, gates * h] and bound by
// reading its weights, b being small; hence 8-bit weights. Bidirectional layers are two of these,
// one reversed.
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/operand_shape.h"
#include "ir/ops/recurrent_activations.h"
#include "ir/ops/recurrent_gradient.h"
#include "ir/ops/recurrent_layer.h"

namespace tilewright::ir {
namespace {

template <int gates, bool cell>
Status check_states(const InferContext& c, const Expr& batch, const Expr& h) {
  TW_RETURN_IF_ERROR(check_shape(c, kInitialH, {batch, h}));
  TW_RETURN_IF_ERROR(check_shape(c, kLens, {batch}));
  if (cell) TW_RETURN_IF_ERROR(check_shape(c, kInitialC, {batch, h}));
  if (cell) TW_RETURN_IF_ERROR(check_shape(c, kPeepholes, {simplify(h * Expr(3))}));
  return gates == 3 ? check_shape(c, kRecurrentBias, {h}) : Status{};
}

template <int gates, bool cell>
Status infer_steps(InferContext& c) {
  const TensorType &x = c.type(kProjected), &r = c.type(kRecurrent);
  if (x.rank() != 3 || r.rank() != 2)
    return c.error("expected [s, b, g * h] and [h, g * h], found " + to_string(x) + " and " +
                   to_string(r));
  const bool bytes = cell && r.dtype == DType::kInt8 && x.dtype == DType::kFloat32,
             halves = is_float(r.dtype) && accumulator(r.dtype) == x.dtype;
  if (!is_float(x.dtype) || (r.dtype != x.dtype && !bytes && !halves))
    return c.error("operands must be of one floating-point type: " + to_string(x) + " and " +
                   to_string(r));
  if (bytes != (c.has(kScale) && c.has(kSums)) && cell)
    return c.error("recurrent_scale and recurrent_sums go with an i8 recurrent, found " +
                   to_string(r));
  const Expr h = r.dims[0];
  auto size = as_int(h), columns = as_int(r.dims[1]), given = as_int(x.dims[2]);
  if (!size || !columns || !given)
    return c.needs_value("the hidden size is not known at compile time");
  if (*columns != gates * *size || *given != *columns)
    return c.error("expected [s, b, " + std::to_string(gates) + " * h] and [h, " +
                   std::to_string(gates) + " * h], found " + to_string(x) + " and " + to_string(r));
  TW_RETURN_IF_ERROR((check_states<gates, cell>(c, x.dims[1], h)));
  const size_t count = static_cast<size_t>(gates == 4 ? 3 : gates == 3 ? 2 : 1);
  TW_RETURN_IF_ERROR(check_activations(c, count));
  c.set_output(0, x.dtype, {x.dims[0], x.dims[1], h});
  c.set_output(1, x.dtype, {x.dims[1], h});
  if (cell) c.set_output(2, x.dtype, {x.dims[1], h});
  c.set_output(cell ? 3 : 2, x.dtype, x.dims);
  if (gates > 1) c.set_output(cell ? 4 : 3, x.dtype, {x.dims[0], x.dims[1], h});
  return {};
}

void compute_rnn(ComputeContext& c) {
  Steps s(c);
  Buffer sums = c.b.temp("sums", s.acc, {s.batch, s.hidden});
  s.run([&](const Expr& t) {
    s.multiply(sums, s.h, 0, "recurrent");
    s.keep(
        t, 2, s.hidden, [&](const Axes& i) { return load(sums, i) + s.projected(t, i, 0); },
        "entering");
    c.b.compute(
        s.h,
        [&](const Axes& i) {
          return s.updated(t, i, s.h,
                           activation(c, 0, s.clipped(load(sums, i) + s.projected(t, i, 0))));
        },
        "h");
  });
}

// Gates z, r, n.
void compute_gru(ComputeContext& c) {
  Steps s(c);
  const bool reset_after = c.attr_int("linear_before_reset") != 0;
  const Expr h = s.hidden;
  auto gate = [&](const Buffer& sums, const Expr& t, const Axes& i, int k) {
    return activation(c, 0,
                      s.clipped(load(sums, {i[0], i[1] + Expr(k) * h}) + s.projected(t, i, k)));
  };
  auto blend = [&](const Expr& t, const Axes& i, const Expr& z, const Expr& n) {
    return s.updated(t, i, s.h, (constant(1, s.acc) - z) * n + z * load(s.h, i));
  };
  auto keep_gates = [&](const Buffer& sums, const Expr& t, const auto& entering) {
    for (int k = 0; k < 3; ++k)
      s.keep_gate(t, 2, k, [&](const Axes& i) {
        return k == 2 ? entering(i) : load(sums, {i[0], i[1] + Expr(k) * h}) + s.projected(t, i, k);
      });
  };
  if (reset_after) {
    Buffer sums = c.b.temp("sums", s.acc, {s.batch, simplify(Expr(3) * h)});
    auto inner = [&](const Axes& i) {
      const Expr x = load(sums, {i[0], i[1] + Expr(2) * h});
      return c.has(kRecurrentBias) ? x + cast(s.acc, load(c.in(kRecurrentBias), {i[1]})) : x;
    };
    s.run([&](const Expr& t) {
      s.multiply(sums, s.h, 0, "recurrent");
      auto entering = [&](const Axes& i) {
        return s.projected(t, i, 2) + gate(sums, t, i, 1) * inner(i);
      };
      keep_gates(sums, t, entering);
      s.keep(t, 3, h, inner, "inner");
      c.b.compute(
          s.h,
          [&](const Axes& i) {
            const Expr n = activation(c, 1, s.clipped(entering(i)));
            return blend(t, i, gate(sums, t, i, 0), n);
          },
          "h");
    });
    return;
  }
  Buffer sums = c.b.temp("sums", s.acc, {s.batch, simplify(Expr(2) * h)}),
         inner = c.b.temp("inner", s.acc, {s.batch, h});
  Buffer kept = c.b.temp("kept", s.acc, {s.batch, h});
  s.run([&](const Expr& t) {
    s.multiply(sums, s.h, 0, "recurrent");
    c.b.compute(kept, [&](const Axes& i) { return gate(sums, t, i, 1) * load(s.h, i); }, "reset");
    s.multiply(inner, kept, Expr(2) * h, "recurrent_n");
    auto entering = [&](const Axes& i) { return s.projected(t, i, 2) + load(inner, i); };
    keep_gates(sums, t, entering);
    s.keep(t, 3, h, [&](const Axes& i) { return load(kept, i); }, "kept_state");
    c.b.compute(
        s.h,
        [&](const Axes& i) {
          const Expr n = activation(c, 1, s.clipped(entering(i)));
          return blend(t, i, gate(sums, t, i, 0), n);
        },
        "h");
  });
}

// Gates i, o, f, g, as ONNX orders them.
void compute_lstm(ComputeContext& c) {
  Steps s(c);
  const Expr h = s.hidden;
  Buffer cell = c.b.temp("c", s.acc, {s.batch, h}),
         sums = c.b.temp("sums", s.acc, {s.batch, simplify(Expr(4) * h)});
  s.start(cell, kInitialC, "initial_c");
  auto gate = [&](const Expr& t, const Axes& i, int k, int peephole) {
    Expr x = load(sums, {i[0], i[1] + Expr(k) * h}) + s.projected(t, i, k);
    if (c.has(kPeepholes) && peephole >= 0)
      x = x + cast(s.acc, load(c.in(kPeepholes), {i[1] + Expr(peephole) * h})) * load(cell, i);
    return s.clipped(x);
  };
  s.run([&](const Expr& t) {
    if (c.has(kScale))
      s.multiply_bytes(sums, "recurrent");
    else
      s.multiply(sums, s.rounded_state(), 0, "recurrent");
    for (int k = 0; k < 4; ++k)
      s.keep_gate(t, 3, k, [&](const Axes& i) {
        return load(sums, {i[0], i[1] + Expr(k) * h}) + s.projected(t, i, k);
      });
    c.b.compute(
        cell,
        [&](const Axes& i) {
          Expr in = activation(c, 0, gate(t, i, 0, 0)), value = activation(c, 1, gate(t, i, 3, -1));
          Expr forget = c.attr_int("input_forget") ? constant(1, s.acc) - in
                                                   : activation(c, 0, gate(t, i, 2, 2));
          return s.updated(t, i, cell, forget * load(cell, i) + in * value);
        },
        "c");
    s.keep(t, 4, h, [&](const Axes& i) { return load(cell, i); }, "cells");
    c.b.compute(
        s.h,
        [&](const Axes& i) {
          return s.updated(t, i, s.h,
                           activation(c, 0, gate(t, i, 1, 1)) * activation(c, 2, load(cell, i)));
        },
        "h");
  });
  s.finish(2, cell, "y_c");
}

}  // namespace

const std::vector<OpDef>& recurrent_ops() {
  using enum AttributeKind;
  using F = std::vector<double>;
  using S = std::vector<std::string>;
  const OperandDef projected{"projected"}, recurrent{"recurrent"},
      initial_h{"initial_h", OperandDef::kOptional}, lens{"sequence_lens", OperandDef::kOptional};
  const std::vector<AttributeDef> attributes{
      {"reverse", kInt, "steps run from the end to the start"},
      {"activations", kStrings, "in the order of the ONNX operator, lower-case"},
      {"alpha", kFloats, "one for each activation"},
      {"beta", kFloats, "one for each activation"},
      {"clip", kFloat, "bound of what enters an activation"}};
  auto with = [&](const std::vector<AttributeDef>& more) {
    auto a = attributes;
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  const DType f = DType::kFloat32;
  static const std::vector<OpDef> ops{
      {.name = "rnn_steps",
       .summary = "h = f(projected[t] + h * recurrent) for each step t",
       .operands = {projected, recurrent, initial_h, lens},
       .attributes = attributes,
       .outputs = "y, y_h, entering",
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_steps<1, false>,
       .compute = compute_rnn,
       .gradient = gradient_of_rnn,
       .example = {.inputs = {{f, {5, 2, 19}}, {f, {19, 19}}},
                   .attributes = {{"activations", S{"tanh"}}, {"alpha", F{0}}, {"beta", F{0}}},
                   .outputs = 3},
       .source = "https://onnx.ai/onnx/operators/onnx__RNN.html"},
      {.name = "gru_steps",
       .summary = "gated recurrent unit; gates z, r, n lie side by side in the last dimension of "
                  "projected and recurrent",
       .operands =
           {projected, recurrent, initial_h, lens, {"recurrent_bias", OperandDef::kOptional}},
       .attributes =
           with({{"linear_before_reset", kInt, "r is applied to h * recurrent, not to h"}}),
       .outputs = "y, y_h, entering, inner",
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_steps<3, false>,
       .compute = compute_gru,
       .gradient = gradient_of_gru,
       .example = {.inputs = {{f, {5, 2, 57}}, {f, {19, 57}}},
                   .attributes = {{"activations", S{"sigmoid", "tanh"}},
                                  {"alpha", F{0, 0}},
                                  {"beta", F{0, 0}}},
                   .outputs = 4},
       .source = "https://onnx.ai/onnx/operators/onnx__GRU.html"},
      {.name = "lstm_steps",
       .summary = "long short-term memory; gates i, o, f, g lie side by side in the last dimension "
                  "of projected and recurrent; recurrent may be i8, times recurrent_scale, with "
                  "the sums of its columns: h then goes into the product in 8 bits, by its range",
       .operands = {projected,
                    recurrent,
                    initial_h,
                    lens,
                    {"initial_c", OperandDef::kOptional},
                    {"peepholes", OperandDef::kOptional},
                    {"recurrent_scale", OperandDef::kOptional},
                    {"recurrent_sums", OperandDef::kOptional}},
       .attributes = with({{"input_forget", kInt, "the forget gate is 1 - i"},
                           {"quantize_state", kInt, "h is rounded to 8 bits before its product"}}),
       .outputs = "y, y_h, y_c, entering, cells",
       .fusion = FusionKind::kOpaque,
       .infer_type = infer_steps<4, true>,
       .compute = compute_lstm,
       .gradient = gradient_of_lstm,
       .example = {.inputs = {{f, {5, 2, 76}}, {f, {19, 76}}},
                   .attributes = {{"activations", S{"sigmoid", "tanh", "tanh"}},
                                  {"alpha", F{0, 0, 0}},
                                  {"beta", F{0, 0, 0}}},
                   .outputs = 5},
       .source = "https://onnx.ai/onnx/operators/onnx__LSTM.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
