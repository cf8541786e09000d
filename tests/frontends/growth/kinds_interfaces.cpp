#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

void graph_inputs(GraphMaker& g, int n) { g.output(g.node("Sum", g.inputs(n, {8}))); }

void graph_outputs(GraphMaker& g, int n) {
  std::string t = g.input({8});
  for (int i = 0; i < n; ++i) g.output(t = g.node("Tanh", {t}));
}
void initialisers(GraphMaker& g, int n) {
  std::string t = g.input({8});
  for (int i = 0; i < n; ++i) t = g.node(i % 2 ? "Add" : "Mul", {t, g.weights({8})});
  g.output(t);
}
void unused_initialisers(GraphMaker& g, int n) {
  for (int i = 0; i < n; ++i) g.weights({8});
  g.output(g.node("Neg", {g.input({8})}));
}
void symbols(GraphMaker& g, int n) {
  std::string t = g.input({"s0", 8});
  for (int i = 1; i <= n; ++i) {
    const std::string next = g.input({"s" + std::to_string(i), "s" + std::to_string(i - 1)});
    t = g.node("MatMul", {next, t});
  }
  g.output(t);
}
void independent_symbols(GraphMaker& g, int n) {
  for (int i = 0; i < n; ++i) g.output(g.node("Neg", {g.input({"s" + std::to_string(i), 2})}));
}
// Eight dimensions of two elements among others of one.
Dims sparse_dims(int rank) {
  Dims dims(static_cast<size_t>(rank), Dim{int64_t{1}});
  for (size_t k = 0; k < 8; ++k) dims[k * static_cast<size_t>(rank) / 8] = Dim{int64_t{2}};
  return dims;
}
void ranks(GraphMaker& g, int n) {
  Integers perm;
  for (int64_t d = n; d-- > 0;) perm.push_back(d);
  const std::string turned = g.node("Transpose", {g.input(sparse_dims(n))}, {{"perm", perm}});
  g.output(g.node("Tanh", {turned}));
}
void axes(GraphMaker& g, int n) {
  Integers axes;
  for (int64_t d = 0; d < n; d += 2) axes.push_back(d);
  g.output(g.node("ReduceSum", {g.input(sparse_dims(n)), g.integers(axes)}));
}
void long_attributes(GraphMaker& g, int n) {
  Integers values;
  for (int64_t i = 0; i < 5000 * static_cast<int64_t>(n); ++i) values.push_back(i % 7);
  const std::string rows = g.node("Constant", {}, {{"value_ints", values}});
  g.output(g.node("Gather", {g.input({8, 2}), rows}));
}
void many_constants(GraphMaker& g, int n) {
  std::string t = g.weights({8});
  for (int i = 0; i < n; ++i) t = g.node("Add", {t, g.node("Neg", {g.weights({8})})});
  g.output(g.node("Mul", {t, g.input({8})}));
}

}  // namespace

std::span<const Kind> interfaces() {
  static constexpr Kind kKinds[] = {
      {"graph_inputs", graph_inputs, 100},
      {"graph_outputs", graph_outputs, 25},
      {"initialisers", initialisers, 50},
      {"unused_initialisers", unused_initialisers, 5000},
      {"symbols", symbols, 25},
      {"independent_symbols", independent_symbols, 40},
      {"ranks", ranks, 16, 64},
      {"axes", axes, 16, 64},
      {"long_attributes", long_attributes, 20},
      {"many_constants", many_constants, 200},
  };
  return kKinds;
}

}  // namespace tilewright::growth
