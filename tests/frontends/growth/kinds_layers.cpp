#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

const Attributes kPadded = {{"pads", Integers{1, 1, 1, 1}}};

void products(GraphMaker& g, int n) {
  std::string t = g.input({4, 16});
  for (int i = 0; i < n; ++i) t = g.node("Relu", {g.node("MatMul", {t, g.weights({16, 16})})});
  g.output(t);
}
void convolutions(GraphMaker& g, int n) {
  std::string t = g.input({1, 8, 6, 6});
  for (int i = 0; i < n; ++i)
    t = g.node("Relu", {g.node("Conv", {t, g.weights({8, 8, 3, 3}), g.weights({8})}, kPadded)});
  g.output(t);
}
void residual_blocks(GraphMaker& g, int n) {
  std::string t = g.input({1, 8, 6, 6});
  for (int i = 0; i < n; ++i) {
    const std::string conv = g.node("Conv", {t, g.weights({8, 8, 3, 3})}, kPadded);
    t = g.node("Add", {t, g.node("Relu", {conv})});
  }
  g.output(t);
}
// Each layer appends its channels to all before.
void dense_blocks(GraphMaker& g, int n) {
  std::string t = g.input({1, 4, 4, 4});
  for (int i = 0; i < n; ++i) {
    const std::string layer = g.node("Conv", {t, g.weights({2, 4 + 2 * i, 1, 1})});
    t = g.node("Concat", {t, g.node("Relu", {layer})}, {{"axis", int64_t{1}}});
  }
  g.output(t);
}
void pools(GraphMaker& g, int n) {
  std::string t = g.input({1, 2, 12, 12});
  const Attributes window = {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}};
  for (int i = 0; i < n; ++i) t = g.node(i % 2 ? "MaxPool" : "AveragePool", {t}, window);
  g.output(t);
}
void lstm_stack(GraphMaker& g, int n) {
  std::string t = g.input({3, 1, 8});
  for (int i = 0; i < n; ++i) {
    t = g.node("LSTM", {t, g.weights({1, 32, 8}), g.weights({1, 32, 8})},
               {{"hidden_size", int64_t{8}}});
    t = g.node("Squeeze", {t, g.integers({1})});
  }
  g.output(t);
}
void normalisations(GraphMaker& g, int n) {
  std::string t = g.input({8, 32});
  for (int i = 0; i < n; ++i)
    t = i % 2 ? g.node("Softmax", {t}, {{"axis", int64_t{-1}}})
              : g.node("LayerNormalization", {t, g.weights({32}), g.weights({32})});
  g.output(t);
}
void open_normalisations(GraphMaker& g, int n) {
  std::string t = g.input({"rows", 32});
  for (int i = 0; i < n; ++i) {
    const std::string norm = g.node("LayerNormalization", {t, g.weights({32}), g.weights({32})});
    t = g.node("Add", {t, g.node("Tanh", {norm})});
  }
  g.output(t);
}
void attention(GraphMaker& g, int n) {
  std::string t = g.input({1, "length", 16});
  for (int i = 0; i < n; ++i) {
    const std::string q = g.node("MatMul", {t, g.weights({16, 16})});
    const std::string k = g.node("MatMul", {t, g.weights({16, 16})});
    const std::string v = g.node("MatMul", {t, g.weights({16, 16})});
    const Attributes turned = {{"perm", Integers{0, 2, 1}}};
    const std::string scores = g.node("MatMul", {q, g.node("Transpose", {k}, turned)});
    const std::string p = g.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    t = g.node("Add", {t, g.node("MatMul", {p, v})});
  }
  g.output(t);
}

}  // namespace

std::span<const Kind> layers() {
  static constexpr Kind kKinds[] = {
      {"products", products, 25},
      {"convolutions", convolutions, 15},
      {"residual_blocks", residual_blocks, 15},
      {"dense_blocks", dense_blocks, 5},
      {"pools", pools, 15},
      {"lstm_stack", lstm_stack, 5},
      {"normalisations", normalisations, 25},
      {"open_normalisations", open_normalisations, 25},
      {"attention", attention, 5},
  };
  return kKinds;
}

}  // namespace tilewright::growth
