// The gradients of softmax and of normalisations, each one pass over its rows: as formulas, sums along a
// row and what is made of them would be kernels of their own, and the terms in memory between them.
#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/norm_rows.h"

namespace tilewright::ir {
namespace {

// What there is to normalise has the shape of what is made of it, and the axis is one of its.
Status infer_like_dy(InferContext& c) {
  const TensorType &dy = c.type(0), &other = c.type(1);
  bool fits = other.rank() == dy.rank() && other.dtype == dy.dtype && is_float(dy.dtype);
  for (int d = 0; fits && d < dy.rank(); ++d) fits = c.agree(c.dim(0, d), c.dim(1, d));
  const int axis = c.axis(dy.rank(), -1);
  if (!fits || axis < 0 || axis >= dy.rank())
    return c.error("dy is " + to_string(dy) + " and what it is the gradient of " +
                   to_string(other) + ", axis " + std::to_string(c.attr_int("axis", -1)));
  c.set_output(0, dy);
  return {};
}
// Operands: dy, y.
// dx = (dy - sum(dy * y)) * y, and of the logarithm dy - sum(dy) * exp(y).
void compute_softmax_gradient(ComputeContext& c) {
  const auto axis = static_cast<size_t>(c.axis(c.rank(0), -1));
  const Buffer &dy = c.in(0), &y = c.in(1);
  const DType dtype = dy->dtype, acc = accumulator(dtype);
  const bool logarithm = c.attr_int("logarithm") != 0;
  const std::vector<Expr> along{dy->shape[axis]};
  std::vector<Expr> rows = dy->shape;
  rows.erase(rows.begin() + static_cast<long>(axis));
  Buffer terms = c.b.temp("terms", acc, dy->shape), total = c.b.temp("total", acc, rows);
  const auto at = [&](const Buffer& b, const Axes& i) { return cast(acc, load(b, i)); };
  c.b.compute(
      terms, [&](const Axes& i) { return logarithm ? at(dy, i) : at(dy, i) * at(y, i); }, "terms");
  c.b.reduce(
      total, along, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Axes all = i;
        all.insert(all.begin() + static_cast<long>(axis), r[0]);
        return load(terms, all);
      },
      "sum");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes row = i;
        row.erase(row.begin() + static_cast<long>(axis));
        const Expr sum = load(total, row);
        return cast(dtype, logarithm ? at(dy, i) - sum * unary(UnaryOp::kExp, at(y, i))
                                     : (at(dy, i) - sum) * at(y, i));
      },
      "softmax_gradient");
}

// Operands: dy, x, mean and inv_std_dev as layer_norm gives them, scale.
Status infer_layer_norm_gradient(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_like_dy(c));
  const TensorType& x = c.type(1);
  const int axis = c.axis(x.rank(), -1);
  for (int k = 2; k < 5; ++k) {
    if (!c.has(k)) continue;
    const TensorType& t = c.type(k);
    const bool of_rows = k < 4;
    bool fits = t.rank() <= x.rank() && (!of_rows || t.dtype == accumulator(x.dtype));
    for (int d = 0; fits && d < t.rank(); ++d) {
      const int at = x.rank() - t.rank() + d;
      fits =
          is_one(c.dim(k, d)) || (!(of_rows && at >= axis) && c.agree(c.dim(k, d), c.dim(1, at)));
    }
    if (!fits)
      return c.error((k == 2   ? "mean is "
                      : k == 3 ? "inv_std_dev is "
                               : "scale is ") +
                     to_string(t) + ", which does not fit x: " + to_string(x));
  }
  return {};
}
// With n = (x - mean) / std and g = dy * scale: dx = (g - mean(g) - n * mean(g * n)) / std; no mean is
// taken off by rms.
void compute_layer_norm_gradient(ComputeContext& c) {
  const Buffer& x = c.in(1);
  const bool rms = c.attr_int("rms") != 0;
  const DType dtype = x->dtype, acc = accumulator(dtype);
  const NormRows rows(x->shape, c.axis(c.rank(1), -1));
  const auto inverse = [&](const Axes& i) { return c.read(3, i); };
  const auto normalised = [&](const Axes& i) {
    const Expr v = cast(acc, load(x, i));
    return (rms ? v : v - c.read(2, i)) * inverse(i);
  };
  const auto scaled = [&](const Axes& i) {
    const Expr g = cast(acc, load(c.in(0), i));
    return c.has(4) ? g * cast(acc, c.read(4, i)) : g;
  };
  const auto mean_of = [&](const char* name, const std::function<Expr(const Axes&)>& term) {
    const std::string of = std::string("of_") + name;
    Buffer terms = c.b.temp("terms_" + of, acc, x->shape),
           sum = c.b.temp("sum_" + of, acc, rows.outer),
           mean = c.b.temp("mean_" + of, acc, rows.outer);
    c.b.compute(terms, term, terms->name);
    c.b.reduce(
        sum, rows.inner, Combiner::kSum,
        [&](const Axes& i, const Axes& r) { return load(terms, rows.join(i, r)); }, sum->name);
    c.b.compute(
        mean, [&](const Axes& i) { return load(sum, i) / cast(acc, rows.count); }, mean->name);
    return mean;
  };
  const Buffer along = mean_of("products", [&](const Axes&i) { return scaled(i) * normalised(i); }),
               level = rms ? Buffer() : mean_of("gradients", scaled);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        const Axes row = rows.of(i);
        const Expr g = level ? scaled(i) - load(level, row) : scaled(i);
        return cast(dtype, (g - normalised(i) * load(along, row)) * inverse(i));
      },
      "layer_norm_gradient");
}

}  // namespace

const std::vector<OpDef>& normalization_gradient_ops() {
  static const std::vector<OpDef> ops{
      {.name = "softmax_gradient",
       .summary = "of softmax's operand, by its result y: (dy - sum of dy * y) * y, along an axis",
       .operands = {{"dy"}, {"y"}},
       .attributes = {{"axis", AttributeKind::kInt, "default -1"},
                      {"logarithm", AttributeKind::kInt,
                       "of log_softmax's: dy - sum of dy * exp(y)"}},
       .fusion = FusionKind::kReduction,
       .infer_type = infer_like_dy,
       .compute = compute_softmax_gradient,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}}, {DType::kFloat32, {3, 4, 37}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Softmax.html"},
      {.name = "layer_norm_gradient",
       .summary = "of layer_norm's x, by what it made of it",
       .operands = {{"dy"}, {"x"}, {"mean"}, {"inv_std_dev"}, {"scale", OperandDef::kOptional}},
       .attributes = {{"axis", AttributeKind::kInt, "default -1"},
                      {"rms", AttributeKind::kInt, "root mean square only: no mean is taken off"}},
       .fusion = FusionKind::kReduction,
       .infer_type = infer_layer_norm_gradient,
       .compute = compute_layer_norm_gradient,
       .example = {.inputs = {{DType::kFloat32, {3, 4, 37}},
                              {DType::kFloat32, {3, 4, 37}},
                              {DType::kFloat32, {3, 4, 1}},
                              {DType::kFloat32, {3, 4, 1}},
                              {DType::kFloat32, {37}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__LayerNormalization.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
