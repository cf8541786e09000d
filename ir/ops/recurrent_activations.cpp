#include "ir/ops/recurrent_activations.h"

namespace tilewright::ir {

namespace {

struct Call {
  const Expr &x, alpha, beta, zero, one;
};
struct Row {
  std::string_view name;
  Expr (*apply)(const Call&);
};
// https://onnx.ai/onnx/operators/onnx__LSTM.html, "Activation functions"
const Row kRows[] = {
    {"relu", [](const Call& c) { return max(c.x, c.zero); }},
    {"tanh", [](const Call& c) { return unary(UnaryOp::kTanh, c.x); }},
    {"sigmoid", [](const Call& c) { return unary(UnaryOp::kSigmoid, c.x); }},
    {"affine", [](const Call& c) { return c.alpha * c.x + c.beta; }},
    {"leakyrelu", [](const Call& c) { return select(c.x >= c.zero, c.x, c.alpha * c.x); }},
    {"thresholdedrelu", [](const Call& c) { return select(c.x >= c.alpha, c.x, c.zero); }},
    {"scaledtanh", [](const Call& c) { return c.alpha * unary(UnaryOp::kTanh, c.beta * c.x); }},
    {"hardsigmoid", [](const Call& c) { return clamp(c.alpha * c.x + c.beta, c.zero, c.one); }},
    {"elu",
     [](const Call& c) {
       return select(c.x >= c.zero, c.x, c.alpha * unary(UnaryOp::kExpm1, c.x));
     }},
    {"softsign", [](const Call& c) { return c.x / (c.one + unary(UnaryOp::kAbs, c.x)); }},
    {"softplus",
     [](const Call& c) {  // log(1 + e^x) without overflow
       return max(c.x, c.zero) +
              unary(UnaryOp::kLog1p, unary(UnaryOp::kExp, -unary(UnaryOp::kAbs, c.x)));
     }},
};

template <typename T>
const T& list(const NodeView& c, const char* name) {
  static const T none;
  auto it = c.node().attributes.find(name);
  const T* v = it == c.node().attributes.end() ? nullptr : std::get_if<T>(&it->second);
  return v ? *v : none;
}

}  // namespace

Status check_activations(const InferContext& c, size_t count) {
  const auto& names = list<std::vector<std::string>>(c, "activations");
  if (names.size() != count || list<std::vector<double>>(c, "alpha").size() != count ||
      list<std::vector<double>>(c, "beta").size() != count)
    return c.error("expected " + std::to_string(count) +
                   " activations, each with alpha and beta, found " + std::to_string(names.size()));
  for (const std::string& n : names) {
    bool known = false;
    for (const Row& r : kRows) known |= r.name == n;
    if (!known) return c.error("unknown activation '" + n + "'");
  }
  return {};
}

Expr activation(const NodeView& c, size_t n, const Expr& x) {
  const std::string& name = list<std::vector<std::string>>(c, "activations")[n];
  auto number = [&](double v) { return constant(v, x.dtype()); };
  const Call call{x, number(list<std::vector<double>>(c, "alpha")[n]),
                  number(list<std::vector<double>>(c, "beta")[n]), number(0), number(1)};
  for (const Row& r : kRows)
    if (r.name == name) return r.apply(call);
  TW_CHECK(false);
  return nullptr;
}

}  // namespace tilewright::ir
