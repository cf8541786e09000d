#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

void pointwise_chain(GraphMaker& g, int n) {
  static const char* const kOps[] = {"Relu", "Tanh", "Neg", "Sigmoid"};
  std::string t = g.input({256});
  const std::string c = g.input({256});
  for (int i = 0; i < n; ++i) t = i % 5 == 4 ? g.node("Add", {t, c}) : g.node(kOps[i % 5], {t});
  g.output(t);
}
void open_pointwise_chain(GraphMaker& g, int n) {
  std::string t = g.input({"a", "b"});
  const std::string c = g.input({"b"});
  for (int i = 0; i < n; ++i) t = g.node(i % 2 ? "Relu" : "Add", i % 2 ? Names{t} : Names{t, c});
  g.output(t);
}
void where_chain(GraphMaker& g, int n) {
  std::string t = g.input({16, 16});
  for (int i = 0; i < n; ++i) {
    const std::string mask = g.node("Less", {t, g.weights({16})});
    t = g.node("Where", {mask, g.node("Neg", {t}), t});
  }
  g.output(t);
}
void cast_chain(GraphMaker& g, int n) {
  std::string t = g.input({64});
  for (int i = 0; i < n; ++i) {
    t = g.node("Cast", {t}, {{"to", int64_t{6}}});
    t = g.node("Cast", {g.node("Abs", {t})}, {{"to", int64_t{1}}});
  }
  g.output(t);
}
void reductions(GraphMaker& g, int n) {
  static const char* const kOps[] = {"ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2"};
  std::string t = g.input({8, 32});
  for (int i = 0; i < n; ++i) {
    const std::string sum = g.node(kOps[i % 4], {t, g.integers({1})}, {{"keepdims", int64_t{1}}});
    t = g.node("Sub", {t, sum});
  }
  g.output(t);
}
void quantised_chain(GraphMaker& g, int n) {
  std::string t = g.input({16, 16});
  const std::string scale = g.scalar(0.1f), zero = g.integer(3, kU8);
  for (int i = 0; i < n; ++i) {
    t = g.node("QuantizeLinear", {t, scale, zero});
    t = g.node("DequantizeLinear", {t, scale, zero});
    t = g.node("Add", {t, g.weights({16})});
  }
  g.output(t);
}
void quantised_products(GraphMaker& g, int n) {
  std::string t = g.input({4, 16});
  const std::string scale = g.scalar(0.1f), zero = g.integer(3, kU8);
  for (int i = 0; i < n; ++i) {
    t = g.node("DequantizeLinear", {g.node("QuantizeLinear", {t, scale, zero}), scale, zero});
    Integers bytes;
    for (int k = 0; k < 256; ++k) bytes.push_back((k * 7 + i) % 31 - 15);
    const std::string w =
        g.node("DequantizeLinear", {g.integers({16, 16}, bytes, kI8), scale, g.integer(0, kI8)});
    t = g.node("Relu", {g.node("MatMul", {t, w})});
  }
  g.output(t);
}

}  // namespace

std::span<const Kind> chains() {
  static constexpr Kind kKinds[] = {
      {"pointwise_chain", pointwise_chain, 40},
      {"open_pointwise_chain", open_pointwise_chain, 50},
      {"where_chain", where_chain, 20},
      {"cast_chain", cast_chain, 20},
      {"reductions", reductions, 10},
      {"quantised_chain", quantised_chain, 15},
      {"quantised_products", quantised_products, 5},
  };
  return kKinds;
}

}  // namespace tilewright::growth
