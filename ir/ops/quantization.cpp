// Affine quantisation: real = (stored - zero_point) * scale. Scale and zero point broadcast as in
// numpy; importers bring them into that form for one value per axis or per block.
//
//    quantize    y = clamp(round_half_even(x / scale) + zero_point)
//    dequantize  x = (y - zero_point) * scale
//
// Products between the two are rewritten to integer arithmetic by passes/graph
// (quantize_contractions, expand_zero_points). round_rows is dynamic quantisation: symmetric, i16,
// one scale per row of activations.
#include <cmath>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kMostLevels = 32767;  // of round_rows: the largest i16

Status check_parameters(InferContext& c, DType stored) {
  const auto& x = c.type(0);
  for (int i : {1, 2}) {
    if (!c.has(i)) continue;
    auto dims = c.broadcast(x.dims, c.type(i).dims);
    if (!dims.ok() || dims->size() != x.dims.size())
      return c.error((i == 1 ? "scale is " : "zero point is ") + to_string(c.type(i)) +
                     ", which does not fit x: " + to_string(x));
  }
  if (c.has(1) && !is_float(c.type(1).dtype))
    return c.error("scale is " + to_string(c.type(1)) + ", expected floats");
  if (c.has(2) && c.type(2).dtype != stored)
    return c.error("zero point is " + to_string(c.type(2)) + ", expected " +
                   std::string(name(stored)));
  return {};
}

Status infer_quantize(InferContext& c) {
  auto to = dtype_from_name(c.attr_string("to"));
  if (!to || !is_integer(*to)) return c.unsupported("quantised type '" + c.attr_string("to") + "'");
  TW_RETURN_IF_ERROR(check_parameters(c, *to));
  if (!is_float(c.type(0).dtype))
    return c.error("x is " + to_string(c.type(0)) + ", expected floats");
  c.set_output(0, *to, c.type(0).dims);
  return {};
}
void compute_quantize(ComputeContext& c) {
  const DType from = c.in(0)->dtype, work = from == DType::kFloat64 ? from : DType::kFloat32;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr x = load(c.in(0), i);
        // The quotient is rounded to the type of x before it becomes an integer.
        if (c.has(1)) x = cast(from, cast(work, x) / cast(work, c.read(1, i)));
        Expr y = unary(UnaryOp::kRoundEven, cast(work, x));
        if (c.has(2)) y = y + cast(work, c.read(2, i));
        return cast(c.out()->dtype, y);
      },
      "quantize");
}

Status infer_dequantize(InferContext& c) {
  const DType stored = c.type(0).dtype;
  if (!is_integer(stored)) return c.unsupported("x is " + to_string(c.type(0)));
  TW_RETURN_IF_ERROR(check_parameters(c, stored));
  auto to = dtype_from_name(c.attr_string("to", std::string(name(c.type(1).dtype))));
  if (!to || !is_float(*to))
    return c.error("result type '" + c.attr_string("to") + "', expected floats");
  c.set_output(0, *to, c.type(0).dims);
  return {};
}
void compute_dequantize(ComputeContext& c) {
  const DType to = c.out()->dtype, work = to == DType::kFloat64 ? to : DType::kFloat32;
  const bool narrow = byte_size(c.in(0)->dtype) < 4;  // the difference fits into i32
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        const DType difference = narrow ? DType::kInt32 : work;
        Expr x = cast(difference, load(c.in(0), i));
        if (c.has(2)) x = x - cast(difference, c.read(2, i));
        return cast(to, cast(work, x) * cast(work, c.read(1, i)));
      },
      "dequantize");
}

// Straight through (Bengio et al., "Estimating or Propagating Gradients Through Stochastic Neurons", 2013): where
// the result is within the range of its type, rounding counts as the identity; beyond, the result does not change.
// So do PyTorch's fake_quantize and, by the scale, LSQ (Esser et al., 2020). The derivative by the integers is one of
// floats: only dequantize makes it.
void gradient_of_quantize(GradientContext& c) {
  const V x = c.in(0), dy = c.dy().to(x.dtype());
  const V y = c.has(1) ? x / c.in(1).to(x.dtype()) : x;
  V stored = apply("round", y);
  if (c.has(2)) stored = stored + c.in(2).to(x.dtype());
  const DType to = *dtype_from_name(c.view().attr_string("to"));
  const double numbers = std::ldexp(1.0, 8 * byte_size(to)),
               least = is_unsigned(to) ? 0 : -numbers / 2;
  const V inside = apply("and", apply("greater_equal", stored, stored.number(least)),
                         apply("less_equal", stored, stored.number(least + numbers - 1)));
  const V passed = where(inside, dy, dy.number(0));
  if (!c.has(1)) return c.add(0, passed);
  const V by_quotient = passed / c.in(1).to(x.dtype());
  c.add(0, by_quotient);
  c.add(1, apply("neg", by_quotient * y));
}
void gradient_of_dequantize(GradientContext& c) {
  const V dy = c.dy();
  c.add(0, dy * c.in(1).to(dy.dtype()));
  if (!c.wants(1)) return;
  V x = c.in(0).to(dy.dtype());
  if (c.has(2)) x = x - c.in(2).to(dy.dtype());
  c.add(1, dy * x);
}

// x: [..., n]. outputs: [..., n] in i16, and the scales [..., 1].
Status infer_round_rows(InferContext& c) {
  const auto& x = c.type(0);
  const int64_t levels = c.attr_int("levels", kMostLevels);
  if (x.dtype != DType::kFloat32 || x.rank() < 1)
    return c.error("x is " + to_string(x) + ", expected f32 [..., n]");
  if (levels < 1 || levels > kMostLevels)
    return c.error("levels is " + std::to_string(levels) + ", expected 1 .. " +
                   std::to_string(kMostLevels));
  std::vector<Expr> rows = x.dims;
  rows.back() = 1;
  c.set_output(0, DType::kInt16, x.dims);
  c.set_output(1, DType::kFloat32, rows);
  return {};
}
void compute_round_rows(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const Expr levels =
      float_imm(static_cast<double>(c.attr_int("levels", kMostLevels)), DType::kFloat32);
  const std::vector<Expr> rows(x->shape.begin(), x->shape.end() - 1);
  const Buffer largest = c.b.temp("largest", DType::kFloat32, rows),
               factor = c.b.temp("factor", DType::kFloat32, rows);
  auto row_of = [](const Axes& i) { return Axes(i.begin(), i.end() - 1); };
  c.b.reduce(
      largest, {x->shape.back()}, Combiner::kMax,
      [&](const Axes& i, const Axes& r) {
        Axes at = i;
        at.push_back(r[0]);
        return unary(UnaryOp::kAbs, load(x, at));
      },
      "largest");
  c.b.compute(
      factor,
      [&](const Axes& i) {
        const Expr most = load(largest, i), none = constant(0, DType::kFloat32);
        return select(binary(BinaryOp::kEq, most, none), none, levels / most);
      },
      "factor");
  c.b.compute(
      c.out(0),
      [&](const Axes& i) {
        const Expr y = unary(UnaryOp::kRoundEven, load(x, i) * load(factor, row_of(i)));
        return cast(DType::kInt16, clamp(y, -levels, levels));
      },
      "round");
  c.b.compute(c.out(1), [&](const Axes& i) { return load(largest, row_of(i)) / levels; }, "scale");
}

}  // namespace

const std::vector<OpDef>& quantization_ops() {
  static const std::vector<AttributeDef> to{
      {"to", AttributeKind::kString, "element type of the result by name"}};
  static const TensorType scale{DType::kFloat32, {5, 1}}, zero_point{DType::kInt8, {5, 1}};
  static const std::vector<OpDef> ops{
      {.name = "quantize",
       .summary = "round(x / scale), halves to even, plus zero_point, limited to the range of the "
                  "type `to`",
       .operands = {{"x"}, {"scale", OperandDef::kOptional}, {"zero_point", OperandDef::kOptional}},
       .attributes = to,
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_quantize,
       .compute = compute_quantize,
       .gradient = gradient_of_quantize,
       .example = {.inputs = {{DType::kFloat32, {3, 5, 7}}, scale, zero_point},
                   .attributes = {{"to", std::string("i8")}},
                   .values = {{}, {0.02, 0.005, 0.1}, {0, 3, -7}}},
       .source = "https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html"},
      {.name = "dequantize",
       .summary = "(x - zero_point) * scale",
       .operands = {{"x"}, {"scale"}, {"zero_point", OperandDef::kOptional}},
       .attributes = to,
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_dequantize,
       .compute = compute_dequantize,
       .gradient = gradient_of_dequantize,
       .example = {.inputs = {{DType::kInt8, {3, 5, 7}}, scale, zero_point},
                   .values = {{}, {0.02, 0.005, 0.1}, {0, 3, -7}}},
       .source = "https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html"},
      {.name = "round_rows",
       .summary = "each row of x as integers times a scale of its own: scale = max |row| / levels, "
                  "y = round(row / scale), halves to even. The scale of a row with NaN or infinity "
                  "is NaN or "
                  "infinity",
       .operands = {{"x"}},
       .attributes = {{"levels", AttributeKind::kInt,
                       "largest magnitude of a result, at most 32767 (default)"}},
       .outputs = "y, scale",
       .fusion = FusionKind::kReduction,
       .infer_type = infer_round_rows,
       .compute = compute_round_rows,
       .example = {.inputs = {{DType::kFloat32, {3, 5, 7}}},
                   .attributes = {{"levels", int64_t{1000}}},
                   .outputs = 2},
       .source = "symmetric per-row quantisation, as in DynamicQuantizeLinear but of 16 bits"},
  };
  return ops;
}

}  // namespace tilewright::ir
