// Activation functions, defined by smaller operators as in their ONNX function bodies.
#include <array>
#include <cmath>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"

namespace tilewright::onnx {
namespace {

using ir::ValueId;

// (1 + tanh(u)) / 2 is sigmoid(2 u), which does not cancel.
V tanh_gelu(V x) {
  return x * apply("sigmoid", (x + x * x * x * 0.044715) * (2 * std::sqrt(2 / M_PI)));
}
V erf_gelu(V x) { return x * 0.5 * (apply("erf", x * std::sqrt(0.5)) + 1.0); }

template <V (*formula)(NodeImport&, V)>
void activation(NodeImport& n) {
  n.out(0, formula(n, V{n, n.required(0)}).id);
}

V relu(NodeImport&, V x) { return apply("relu", x); }
V sigmoid(NodeImport&, V x) { return apply("sigmoid", x); }
V leaky_relu(NodeImport& n, V x) { return where(less(x, 0), x * n.float_attr("alpha", 0.01), x); }
V thresholded_relu(NodeImport& n, V x) {
  V above{n, n.op("greater", {x.id, x.number(n.float_attr("alpha", 1)).id})};
  return where(above, x, x.number(0));
}
V elu(NodeImport& n, V x) {
  return where(less(x, 0), apply("expm1", x) * n.float_attr("alpha", 1), x);
}
V celu(NodeImport& n, V x) {
  const double a = n.float_attr("alpha", 1);
  return where(less(x, 0), apply("expm1", x / a) * a, x);
}
V selu(NodeImport& n, V x) {
  const double a = n.float_attr("alpha", 1.67326319217681884765625),
               g = n.float_attr("gamma", 1.05070102214813232421875);
  return where(less(x, 0), apply("expm1", x) * (a * g), x * g);
}
V hard_sigmoid(NodeImport& n, V x) {
  return limit(x * n.float_attr("alpha", 0.2) + n.float_attr("beta", 0.5), 0, 1);
}
V hard_swish(NodeImport&, V x) { return x * limit(x * (1.0 / 6) + 0.5, 0, 1); }
// max(x, 0) + log(1 + exp(-|x|)): no overflow.
V softplus(NodeImport&, V x) {
  return apply("relu", x) + apply("log1p", apply("exp", apply("neg", apply("abs", x))));
}
V softsign(NodeImport&, V x) { return x / (1.0 + apply("abs", x)); }
// x tanh(log(1 + t)), t = exp(x), is x m / (m + 2), m = t (t + 2). Beyond the limit the quotient is
// 1, and m still finite.
V mish(NodeImport&, V x) {
  constexpr double kLimit = 40;
  V t = apply("exp", apply("min", x, x.number(kLimit))), m = t * (t + 2);
  return x * (m / (m + 2));
}
V swish(NodeImport& n, V x) {
  const double a = n.float_attr("alpha", 1);
  return x * apply("sigmoid", a == 1 ? x : x * a);
}
V gelu(NodeImport& n, V x) {
  const std::string kind = n.string_attr("approximate", "none");
  if (kind == "tanh") return tanh_gelu(x);
  if (kind != "none") n.fail("approximate '" + kind + "', expected none or tanh");
  return erf_gelu(x);
}
V fast_gelu(NodeImport& n, V x) { return tanh_gelu(n.has(1) ? x + V{n, n.in(1)} : x); }
V bias_gelu(NodeImport& n, V x) { return erf_gelu(n.has(1) ? x + V{n, n.in(1)} : x); }
V quick_gelu(NodeImport& n, V x) { return x * apply("sigmoid", x * n.float_attr("alpha", 1.702)); }
V prelu(NodeImport& n, V x) { return where(less(x, 0), x * V{n, n.required(1)}, x); }
V shrink(NodeImport& n, V x) {
  const double bias = n.float_attr("bias", 0), lambda = n.float_attr("lambd", 0.5);
  // Neither -lambd nor a fraction has a place among the integers.
  V wide = is_float(x.dtype()) ? x : x.to(DType::kFloat64);
  V above{n, n.op("greater", {wide.id, wide.number(lambda).id})};
  V moved = bias == std::trunc(bias) ? x : wide;
  V inner = where(above, (moved - bias).to(x.dtype()), x.number(0));
  return where(less(wide, -lambda), (moved + bias).to(x.dtype()), inner);
}

constexpr auto kActivationRows = std::to_array<OpMapping>({
    {"", "Relu", 1, activation<relu>},
    {"", "Sigmoid", 1, activation<sigmoid>},
    {"", "LeakyRelu", 1, activation<leaky_relu>, Form::kFormula},
    {"", "ThresholdedRelu", 1, activation<thresholded_relu>, Form::kFormula},
    {"", "Elu", 1, activation<elu>, Form::kFormula},
    {"", "Celu", 12, activation<celu>, Form::kFormula},
    {"", "Selu", 1, activation<selu>, Form::kFormula},
    {"", "HardSigmoid", 1, activation<hard_sigmoid>, Form::kFormula},
    {"", "HardSwish", 14, activation<hard_swish>, Form::kFormula},
    {"", "Softplus", 1, activation<softplus>, Form::kFormula},
    {"", "Softsign", 1, activation<softsign>, Form::kFormula},
    {"", "Mish", 18, activation<mish>, Form::kFormula},
    {"", "Swish", 24, activation<swish>, Form::kFormula},
    {"", "Gelu", 20, activation<gelu>, Form::kFormula},
    {"", "PRelu", 7, activation<prelu>},
    {"", "Shrink", 9, activation<shrink>, Form::kFormula},
    {"com.microsoft", "Gelu", 1, activation<gelu>, Form::kFormula},
    {"com.microsoft", "FastGelu", 1, activation<fast_gelu>, Form::kFormula},
    {"com.microsoft", "BiasGelu", 1, activation<bias_gelu>, Form::kFormula},
    {"com.microsoft", "QuickGelu", 1, activation<quick_gelu>, Form::kFormula},
});

}  // namespace

std::span<const OpMapping> activation_mappings() { return kActivationRows; }

}  // namespace tilewright::onnx
