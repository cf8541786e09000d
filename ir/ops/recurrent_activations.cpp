#include "ir/ops/recurrent_activations.h"

namespace tilewright::ir {

namespace {

struct Call {
  const Expr &x, &y, alpha, beta, zero, one;  // y: apply's result, known to `slope` alone
};
struct Row {
  std::string_view name;
  Expr (*apply)(const Call&);
  Expr (*slope)(const Call&);  // the derivative; by y where that is cheaper
};
Expr tanh(const Expr& x) { return unary(UnaryOp::kTanh, x); }
Expr sigmoid(const Expr& x) { return unary(UnaryOp::kSigmoid, x); }
Expr absolute(const Expr& x) { return unary(UnaryOp::kAbs, x); }
Expr step(const Call& c, const Expr& condition) { return select(condition, c.one, c.zero); }

// https://onnx.ai/onnx/operators/onnx__LSTM.html, "Activation functions"
const Row kRows[] = {
    {"relu", [](const Call& c) { return max(c.x, c.zero); },
     [](const Call& c) { return step(c, c.x > c.zero); }},
    {"tanh", [](const Call& c) { return tanh(c.x); },
     [](const Call& c) { return c.one - c.y * c.y; }},
    {"sigmoid", [](const Call& c) { return sigmoid(c.x); },
     [](const Call& c) { return c.y * (c.one - c.y); }},
    {"affine", [](const Call& c) { return c.alpha * c.x + c.beta; },
     [](const Call& c) { return c.alpha; }},
    {"leakyrelu", [](const Call& c) { return select(c.x >= c.zero, c.x, c.alpha * c.x); },
     [](const Call& c) { return select(c.x >= c.zero, c.one, c.alpha); }},
    {"thresholdedrelu", [](const Call& c) { return select(c.x >= c.alpha, c.x, c.zero); },
     [](const Call& c) { return step(c, c.x >= c.alpha); }},
    {"scaledtanh", [](const Call& c) { return c.alpha * tanh(c.beta * c.x); },
     [](const Call& c) {
       const Expr t = tanh(c.beta * c.x);
       return c.alpha * c.beta * (c.one - t * t);
     }},
    {"hardsigmoid", [](const Call& c) { return clamp(c.alpha * c.x + c.beta, c.zero, c.one); },
     [](const Call& c) {
       const Expr y = c.alpha * c.x + c.beta;
       return select(logical_and(y > c.zero, y < c.one), c.alpha, c.zero);
     }},
    {"elu",
     [](const Call& c) {
       return select(c.x >= c.zero, c.x, c.alpha * unary(UnaryOp::kExpm1, c.x));
     },
     [](const Call& c) {
       return select(c.x >= c.zero, c.one, c.alpha * unary(UnaryOp::kExp, c.x));
     }},
    {"softsign", [](const Call& c) { return c.x / (c.one + absolute(c.x)); },
     [](const Call& c) {
       const Expr n = c.one + absolute(c.x);
       return c.one / (n * n);
     }},
    {"softplus",
     [](const Call& c) {  // log(1 + e^x) without overflow
       return max(c.x, c.zero) + unary(UnaryOp::kLog1p, unary(UnaryOp::kExp, -absolute(c.x)));
     },
     [](const Call& c) { return sigmoid(c.x); }},
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

namespace {

const Row& row_of(const NodeView& c, size_t n) {
  const std::string& name = list<std::vector<std::string>>(c, "activations")[n];
  for (const Row& r : kRows)
    if (r.name == name) return r;
  TW_CHECK(false);
  return kRows[0];
}
Expr apply_row(const NodeView& c, size_t n, const Expr& x, const Expr& y,
               Expr (*function)(const Call&)) {
  auto number = [&](double v) { return constant(v, x.dtype()); };
  return function({x, y, number(list<std::vector<double>>(c, "alpha")[n]),
                   number(list<std::vector<double>>(c, "beta")[n]), number(0), number(1)});
}

}  // namespace

Expr activation(const NodeView& c, size_t n, const Expr& x) {
  return apply_row(c, n, x, {}, row_of(c, n).apply);
}
Expr activation_slope(const NodeView& c, size_t n, const Expr& x, const Expr& y) {
  return apply_row(c, n, x, y, row_of(c, n).slope);
}

}  // namespace tilewright::ir
