// Softmax and normalisations: several blocks over one row, fused into one kernel by their schedule.
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

Status infer_same(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank(), -1);
  if (axis < 0 || axis >= x.rank()) return c.error("axis " + std::to_string(c.attr_int("axis", -1)) + " of " + to_string(x));
  c.set_output(0, x);
  return {};
}
DType accumulator(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t; }

// i without dimension `axis`.
Axes drop(const Axes& i, int axis) {
  Axes r = i;
  r.erase(r.begin() + axis);
  return r;
}
Axes insert(const Axes& i, int axis, Expr e) {
  Axes r = i;
  r.insert(r.begin() + axis, std::move(e));
  return r;
}

template <bool logarithm>
void compute_softmax(ComputeContext& c) {
  const int axis = c.axis(c.rank(0), -1);
  const Buffer& x = c.in(0);
  const DType dtype = x->dtype, acc = accumulator(dtype);
  std::vector<Expr> rows = drop(x->shape, axis);
  const std::vector<Expr> along{x->shape[static_cast<size_t>(axis)]};
  Buffer largest = c.b.temp("largest", acc, rows), total = c.b.temp("total", acc, rows);
  auto at = [&](const Axes& i) { return cast(acc, load(x, i)); };
  c.b.reduce(largest, along, Combiner::kMax, [&](const Axes& i, const Axes& r) { return at(insert(i, axis, r[0])); }, "max");
  if (logarithm) {
    c.b.reduce(total, along, Combiner::kSum, [&](const Axes& i, const Axes& r) {
      return unary(UnaryOp::kExp, at(insert(i, axis, r[0])) - load(largest, i));
    }, "sum");
    c.b.compute(c.out(), [&](const Axes& i) {
      Axes row = drop(i, axis);
      return cast(dtype, at(i) - load(largest, row) - unary(UnaryOp::kLog, load(total, row)));
    }, "log_softmax");
    return;
  }
  Buffer e = c.b.temp("exp", acc, x->shape);
  c.b.compute(e, [&](const Axes& i) { return unary(UnaryOp::kExp, at(i) - load(largest, drop(i, axis))); }, "exp");
  c.b.reduce(total, along, Combiner::kSum, [&](const Axes& i, const Axes& r) { return load(e, insert(i, axis, r[0])); }, "sum");
  c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(e, i) / load(total, drop(i, axis))); }, "divide");
}

// x: [..., normalised dimensions from `axis` on], scale and bias broadcast over them.
// outputs: y, mean, inv_std_dev (f32).
Status infer_layer_norm(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_same(c));
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank(), -1);
  std::vector<Expr> rows = x.dims;
  for (int d = axis; d < x.rank(); ++d) rows[static_cast<size_t>(d)] = 1;
  c.set_output(1, DType::kFloat32, rows);
  c.set_output(2, DType::kFloat32, rows);
  return {};
}
void compute_layer_norm(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const int axis = c.axis(c.rank(0), -1);
  const DType dtype = x->dtype, acc = accumulator(dtype);
  const bool rms = c.attr_int("rms") != 0;
  const auto split = static_cast<long>(axis);
  const std::vector<Expr> rows(x->shape.begin(), x->shape.begin() + split), inner(x->shape.begin() + split, x->shape.end());
  Expr count = 1;
  for (const Expr& e : inner) count = count * e;
  auto join = [](Axes a, const Axes& b) { a.insert(a.end(), b.begin(), b.end()); return a; };
  auto row_of = [&](const Axes& i) { return Axes(i.begin(), i.begin() + split); };
  Buffer mean = c.b.temp("mean", acc, rows), inv = c.b.temp("inv_std", acc, rows);
  auto at = [&](const Axes& i) { return cast(acc, load(x, i)); };
  const Expr n = cast(acc, count);
  if (!rms) {
    Buffer sum = c.b.temp("sum", acc, rows);
    c.b.reduce(sum, inner, Combiner::kSum, [&](const Axes& i, const Axes& r) { return at(join(i, r)); }, "sum");
    c.b.compute(mean, [&](const Axes& i) { return load(sum, i) / n; }, "mean");
  }
  Buffer squares = c.b.temp("squares", acc, rows);
  c.b.reduce(squares, inner, Combiner::kSum, [&](const Axes& i, const Axes& r) {
    Expr d = rms ? at(join(i, r)) : at(join(i, r)) - load(mean, i);
    return d * d;
  }, "squares");
  c.b.compute(inv, [&](const Axes& i) {
    return constant(1, acc) / unary(UnaryOp::kSqrt, load(squares, i) / n + constant(c.attr_float("epsilon", 1e-5), acc));
  }, "inv_std");
  c.b.compute(c.out(), [&](const Axes& i) {
    Expr d = rms ? at(i) : at(i) - load(mean, row_of(i));
    Expr y = d * load(inv, row_of(i));
    if (c.has(1)) y = y * cast(acc, c.read(1, i));
    if (c.has(2)) y = y + cast(acc, c.read(2, i));
    return cast(dtype, y);
  }, "layer_norm");
  auto row_output = [&](int k, const Buffer& from, const char* label) {
    if (!c.wants(k)) return;
    c.b.compute(c.out(k), [&](const Axes& i) { return from ? cast(DType::kFloat32, load(from, row_of(i))) : float_imm(0); }, label);
  };
  row_output(1, rms ? nullptr : mean, "mean_output");
  row_output(2, inv, "inv_std_output");
}

}  // namespace

const std::vector<OpDef>& normalization_ops() {
  static const std::vector<AttributeDef> axis{{"axis", AttributeKind::kInt, "default -1"}};
  static const std::vector<OpDef> ops{
      {.name = "softmax", .summary = "exp(x - max) / sum of it, along an axis", .operands = {{"x"}}, .attributes = axis,
       .fusion = FusionKind::kReduction, .infer_type = infer_same, .compute = compute_softmax<false>,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}}}}, .source = "https://onnx.ai/onnx/operators/onnx__Softmax.html"},
      {.name = "log_softmax", .summary = "logarithm of softmax", .operands = {{"x"}}, .attributes = axis, .fusion = FusionKind::kReduction,
       .infer_type = infer_same, .compute = compute_softmax<true>, .example = {.inputs = {{DType::kFloat32, {3, 37, 4}}}, .attributes = {{"axis", int64_t{1}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__LogSoftmax.html"},
      {.name = "layer_norm", .summary = "x normalised to mean 0 and variance 1 over the dimensions from `axis` on, then scaled and shifted",
       .operands = {{"x"}, {"scale", OperandDef::kOptional}, {"bias", OperandDef::kOptional}},
       .attributes = {{"axis", AttributeKind::kInt, "default -1"}, {"epsilon", AttributeKind::kFloat, "default 1e-5"},
                      {"rms", AttributeKind::kInt, "root mean square only: no mean is taken off"}},
       .outputs = "y, mean, inv_std_dev", .fusion = FusionKind::kReduction, .infer_type = infer_layer_norm, .compute = compute_layer_norm,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}}, {DType::kFloat32, {37}}, {DType::kFloat32, {37}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__LayerNormalization.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
