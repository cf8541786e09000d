// Softmax and normalisations: several blocks over one row, fused into one kernel by their schedule.
#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/norm_rows.h"

namespace tilewright::ir {
namespace {

Status infer_same(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank(), -1);
  if (axis < 0 || axis >= x.rank())
    return c.error("axis " + std::to_string(c.attr_int("axis", -1)) + " of " + to_string(x));
  c.set_output(0, x);
  return {};
}
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
  // In a row of nothing but -inf: exp(-inf - 0) = 0, divided by 1.
  const bool zero_masked = c.attr_int("zero_masked") != 0;
  auto shift = [&](const Axes& row) {
    Expr e = load(largest, row);
    return zero_masked ? select(binary(BinaryOp::kEq, e, lowest(acc)), constant(0, acc), e) : e;
  };
  auto divisor = [&](const Axes& row) {
    Expr e = load(total, row);
    return zero_masked ? select(binary(BinaryOp::kEq, e, constant(0, acc)), constant(1, acc), e)
                       : e;
  };
  c.b.reduce(
      largest, along, Combiner::kMaxNumber,
      [&](const Axes& i, const Axes& r) { return at(insert(i, axis, r[0])); }, "max");
  if (logarithm) {
    c.b.reduce(
        total, along, Combiner::kSum,
        [&](const Axes& i, const Axes& r) {
          return unary(UnaryOp::kExp, at(insert(i, axis, r[0])) - load(largest, i));
        },
        "sum");
    c.b.compute(
        c.out(),
        [&](const Axes& i) {
          Axes row = drop(i, axis);
          return cast(dtype, at(i) - load(largest, row) - unary(UnaryOp::kLog, load(total, row)));
        },
        "log_softmax");
    return;
  }
  Buffer e = c.b.temp("exp", acc, x->shape);
  c.b.compute(
      e, [&](const Axes& i) { return unary(UnaryOp::kExp, at(i) - shift(drop(i, axis))); }, "exp");
  c.b.reduce(
      total, along, Combiner::kSum,
      [&](const Axes& i, const Axes& r) { return load(e, insert(i, axis, r[0])); }, "sum");
  Buffer inverse = c.b.temp("inverse", acc, rows);
  c.b.compute(inverse, [&](const Axes& row) { return constant(1, acc) / divisor(row); }, "invert");
  c.b.compute(
      c.out(),
      [&](const Axes& i) { return cast(dtype, load(e, i) * load(inverse, drop(i, axis))); },
      "scale");
}

// x: [..., normalised dimensions from `axis` on], scale and bias broadcast over them.
// outputs: y, mean, inv_std_dev (f32).
Status infer_layer_norm(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_same(c));
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank(), -1);
  std::vector<Expr> rows = x.dims;
  for (int d = axis; d < x.rank(); ++d) rows[static_cast<size_t>(d)] = 1;
  for (int k : {1, 2}) {
    if (!c.has(k)) continue;
    const TensorType& t = c.type(k);
    bool fits = t.rank() <= x.rank();
    for (int d = 0; fits && d < t.rank(); ++d)
      fits = is_one(c.dim(k, d)) || c.agree(c.dim(k, d), c.dim(0, x.rank() - t.rank() + d));
    if (!fits)
      return c.error((k == 1 ? "scale is " : "bias is ") + to_string(t) +
                     ", which does not fit x: " + to_string(x));
  }
  const DType of_rows = accumulator(x.dtype);
  c.set_output(1, of_rows, rows);
  c.set_output(2, of_rows, rows);
  return {};
}
void compute_layer_norm(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const DType dtype = x->dtype, acc = accumulator(dtype);
  const bool rms = c.attr_int("rms") != 0;
  const NormRows rows(x->shape, c.axis(c.rank(0), -1));
  Buffer mean = c.b.temp("mean", acc, rows.outer), inv = c.b.temp("inv_std", acc, rows.outer);
  auto at = [&](const Axes& i) { return cast(acc, load(x, i)); };
  const Expr n = cast(acc, rows.count);
  if (!rms) {
    Buffer sum = c.b.temp("sum", acc, rows.outer);
    c.b.reduce(
        sum, rows.inner, Combiner::kSum,
        [&](const Axes& i, const Axes& r) { return at(rows.join(i, r)); }, "sum");
    c.b.compute(mean, [&](const Axes& i) { return load(sum, i) / n; }, "mean");
  }
  Buffer squares = c.b.temp("squares", acc, rows.outer);
  c.b.reduce(
      squares, rows.inner, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Expr d = rms ? at(rows.join(i, r)) : at(rows.join(i, r)) - load(mean, i);
        return d * d;
      },
      "squares");
  c.b.compute(
      inv,
      [&](const Axes& i) {
        return constant(1, acc) /
               unary(UnaryOp::kSqrt,
                     load(squares, i) / n + constant(c.attr_float("epsilon", 1e-5), acc));
      },
      "inv_std");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr d = rms ? at(i) : at(i) - load(mean, rows.of(i));
        Expr y = d * load(inv, rows.of(i));
        if (c.has(1)) y = y * cast(acc, c.read(1, i));
        if (c.has(2)) y = y + cast(acc, c.read(2, i));
        return cast(dtype, y);
      },
      "layer_norm");
  auto row_output = [&](int k, const Buffer& from, const char* label) {
    if (!c.wants(k)) return;
    c.b.compute(
        c.out(k), [&](const Axes& i) { return from ? load(from, rows.of(i)) : constant(0, acc); },
        label);
  };
  row_output(1, rms ? nullptr : mean, "mean_output");
  row_output(2, inv, "inv_std_output");
}

template <int64_t logarithm>
void gradient_of_softmax(GradientContext& c) {
  const V y = c.out();
  c.add(0, c.dy().make("softmax_gradient", {c.dy().id, y.id},
                       {{"axis", int64_t{c.view().axis(y.rank(), -1)}}, {"logarithm", logarithm}}));
}
// With n = (x - mean) / std: y = n * scale + bias.
void gradient_of_layer_norm(GradientContext& c) {
  if (c.has_dy(1) || c.has_dy(2)) c.fail("mean and deviation have no gradient as results");
  const NodeView node = c.view();
  const bool rms = node.attr_int("rms") != 0;
  const V x = c.in(0), mean = c.out(1), inverse = c.out(2), dy = c.dy();
  c.add(0, dy.make("layer_norm_gradient",
                   {dy.id, x.id, mean.id, inverse.id, c.has(1) ? c.in(1).id : kNone},
                   {{"axis", int64_t{node.axis(x.rank(), -1)}}, {"rms", int64_t{rms}}}));
  const V wide = x.to(inverse.dtype());
  if (c.wants(1)) c.add(1, dy.to(inverse.dtype()) * ((rms ? wide : wide - mean) * inverse));
  c.add(2, dy);
}

// x: [b, h, q, k] scores, offset: i64[] or i64[1] or i64[b], lengths: i64[b].
Status infer_mask_window(InferContext& c) {
  const auto& x = c.type(0);
  if (x.rank() != 4 || !is_float(x.dtype))
    return c.error("x is " + to_string(x) + ", expected floats [b, h, q, k]");
  for (int i : {1, 2})
    if (c.has(i) && (c.rank(i) > 1 || !is_integer(c.type(i).dtype) ||
                     (c.rank(i) == 1 && !is_one(c.dim(i, 0)) && !c.agree(c.dim(i, 0), x.dims[0]))))
      return c.error((i == 1 ? "offset is " : "lengths are ") + to_string(c.type(i)) +
                     ", expected one integer per batch");
  c.set_output(0, x);
  return {};
}
void compute_mask_window(ComputeContext& c) {
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr x = load(c.in(0), i), inside = bool_imm(true), key = i[3], position = i[2];
        auto per_batch = [&](int operand) {
          if (c.rank(operand) == 0 || is_one(c.dim(operand, 0))) return c.int_element(operand, 0);
          return cast(DType::kInt64, load(c.in(operand), {i[0]}));
        };
        if (c.has(1)) position = position + per_batch(1);
        if (c.has_attribute("right"))
          inside = logical_and(inside, key <= position + Expr(c.attr_int("right")));
        if (c.has_attribute("left"))
          inside = logical_and(inside, key >= position - Expr(c.attr_int("left")));
        if (c.has(2)) inside = logical_and(inside, key < per_batch(2));
        return select(inside, x, lowest(x.dtype()));
      },
      "mask_window");
}

}  // namespace

const std::vector<OpDef>& normalization_ops() {
  static const std::vector<AttributeDef> axis{{"axis", AttributeKind::kInt, "default -1"}};
  static const std::vector<OpDef> ops{
      {.name = "softmax",
       .summary = "exp(x - max) / sum of it, along an axis",
       .operands = {{"x"}},
       .attributes = {axis[0],
                      {"zero_masked", AttributeKind::kInt,
                       "a row of nothing but -inf gives zeros, not NaN"}},
       .fusion = FusionKind::kReduction,
       .infer_type = infer_same,
       .compute = compute_softmax<false>,
       .gradient = gradient_of_softmax<0>,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Softmax.html"},
      {.name = "log_softmax",
       .summary = "logarithm of softmax",
       .operands = {{"x"}},
       .attributes = axis,
       .fusion = FusionKind::kReduction,
       .infer_type = infer_same,
       .compute = compute_softmax<true>,
       .gradient = gradient_of_softmax<1>,
       .example = {.inputs = {{DType::kFloat32, {3, 37, 4}}}, .attributes = {{"axis", int64_t{1}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__LogSoftmax.html"},
      {.name = "mask_window",
       .summary = "attention scores where key <= query + offset + right, key >= query + offset - "
                  "left, key < length; else -inf",
       .operands = {{"x"}, {"offset", OperandDef::kOptional}, {"lengths", OperandDef::kOptional}},
       .attributes = {{"left", AttributeKind::kInt, "keys before the query; absent: all"},
                      {"right", AttributeKind::kInt, "keys after it; absent: all"}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_mask_window,
       .compute = compute_mask_window,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {2, 3, 5, 7}}, {DType::kInt64, {2}}},
                   .attributes = {{"right", int64_t{0}}},
                   .values = {{}, {2, 0}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Attention.html"},
      {.name = "layer_norm",
       .summary = "x normalised to mean 0 and variance 1 over the dimensions from `axis` on, then "
                  "scaled and shifted",
       .operands = {{"x"}, {"scale", OperandDef::kOptional}, {"bias", OperandDef::kOptional}},
       .attributes = {{"axis", AttributeKind::kInt, "default -1"},
                      {"epsilon", AttributeKind::kFloat, "default 1e-5"},
                      {"rms", AttributeKind::kInt, "root mean square only: no mean is taken off"}},
       .outputs = "y, mean, inv_std_dev",
       .fusion = FusionKind::kReduction,
       .infer_type = infer_layer_norm,
       .compute = compute_layer_norm,
       .gradient = gradient_of_layer_norm,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}},
                              {DType::kFloat32, {37}},
                              {DType::kFloat32, {37}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__LayerNormalization.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
