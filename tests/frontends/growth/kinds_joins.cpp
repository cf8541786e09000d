#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

// t[i] = t[i - 1] + t[i - 2]
void shared_sums(GraphMaker& g, int n) {
  std::string before = g.input({64}), t = g.input({64});
  for (int i = 0; i < n; ++i) {
    std::string next = g.node("Add", {t, before});
    before = t;
    t = next;
  }
  g.output(t);
}
// The same with costly functions in between, and by turns.
void shared_functions(GraphMaker& g, int n) {
  std::string before = g.input({64}), t = g.input({64});
  for (int i = 0; i < n; ++i) {
    std::string next = g.node(i % 2 ? "Tanh" : "Exp", {g.node("Mul", {t, before})});
    before = t;
    t = next;
  }
  g.output(t);
}
void diamonds(GraphMaker& g, int n) {
  std::string t = g.input({64});
  for (int i = 0; i < n; ++i)
    t = g.node("Add", {g.node("Relu", {t}), g.node(i % 2 ? "Neg" : "Sigmoid", {t})});
  g.output(t);
}
void open_diamonds(GraphMaker& g, int n) {
  std::string t = g.input({"a", "b"});
  for (int i = 0; i < n; ++i) t = g.node("Mul", {g.node("Relu", {t}), g.node("Neg", {t})});
  g.output(t);
}
// Of many shapes: a value, its transposed twin, and the sums of their slices.
void moved_diamonds(GraphMaker& g, int n) {
  std::string t = g.input({8, 8});
  for (int i = 0; i < n; ++i) t = g.node("Add", {t, g.node("Transpose", {t})});
  g.output(t);
}
// A sum of all that came before.
void dense_sums(GraphMaker& g, int n) {
  std::string sum = g.input({64});
  for (int i = 0; i < n; ++i) sum = g.node("Add", {sum, g.node("Tanh", {sum})});
  g.output(sum);
}
void fan_out(GraphMaker& g, int n) {
  const std::string x = g.input({64});
  Names terms;
  for (int i = 0; i < n; ++i) terms.push_back(g.node("Mul", {x, g.weights({64})}));
  g.output(g.node("Sum", terms));
}
void branches(GraphMaker& g, int n) {
  for (const std::string& x : g.inputs(n, {32})) g.output(g.node("Relu", {g.node("Neg", {x})}));
}
void extremes_of_many(GraphMaker& g, int n) { g.output(g.node("Max", g.inputs(n, {32}))); }

void concat(GraphMaker& g, int n) {
  g.output(g.node("Concat", g.inputs(n, {4, 3}), {{"axis", int64_t{1}}}));
}
void concat_symbols(GraphMaker& g, int n) {
  Names all;
  for (int i = 0; i < n; ++i) all.push_back(g.input({4, "s" + std::to_string(i)}));
  g.output(g.node("Concat", all, {{"axis", int64_t{1}}}));
}
void concat_one_symbol(GraphMaker& g, int n) {
  g.output(g.node("Concat", g.inputs(n, {"s", 3}), {{"axis", int64_t{0}}}));
}
void concat_constants(GraphMaker& g, int n) {
  Names all;
  for (int i = 0; i < n; ++i) all.push_back(i % 2 ? g.weights({4, 3}) : g.input({4, 2}));
  g.output(g.node("Concat", all, {{"axis", int64_t{1}}}));
}
void concat_computed(GraphMaker& g, int n) {
  Names all;
  for (const std::string& x : g.inputs(n, {4, 3})) all.push_back(g.node("Tanh", {x}));
  g.output(g.node("Relu", {g.node("Concat", all, {{"axis", int64_t{1}}})}));
}
void concat_chain(GraphMaker& g, int n) {
  std::string t = g.input({4, 3});
  for (int i = 0; i < n; ++i) t = g.node("Concat", {t, g.input({4, 2})}, {{"axis", int64_t{1}}});
  g.output(t);
}
void split(GraphMaker& g, int n) {
  const std::string x = g.input({4, 3 * static_cast<int64_t>(n)});
  const Attributes axis = {{"axis", int64_t{1}}, {"num_outputs", int64_t{n}}};
  Names parts = g.nodes("Split", {x}, n, axis);
  for (std::string& p : parts) p = g.node("Tanh", {p});
  g.output(g.node("Concat", parts, {{"axis", int64_t{1}}}));
}

}  // namespace

std::span<const Kind> joins() {
  static constexpr Kind kKinds[] = {
      {"shared_sums", shared_sums, 25},
      {"shared_functions", shared_functions, 20},
      {"diamonds", diamonds, 15},
      {"open_diamonds", open_diamonds, 15},
      {"moved_diamonds", moved_diamonds, 10},
      {"dense_sums", dense_sums, 15},
      {"fan_out", fan_out, 50},
      {"branches", branches, 25},
      {"extremes_of_many", extremes_of_many, 50},
      {"concat", concat, 50},
      {"concat_symbols", concat_symbols, 25},
      {"concat_one_symbol", concat_one_symbol, 20},
      {"concat_constants", concat_constants, 50},
      {"concat_computed", concat_computed, 25},
      {"concat_chain", concat_chain, 20},
      {"split", split, 25},
  };
  return kKinds;
}

}  // namespace tilewright::growth
