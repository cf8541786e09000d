#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

void reshapes(GraphMaker& g, int n) {
  std::string t = g.input({4, 6});
  for (int i = 0; i < n; ++i) {
    t = g.node("Reshape", {t, g.integers(i % 2 ? Integers{4, 6} : Integers{3, 8})});
    t = g.node("Relu", {g.node("Transpose", {t})});
  }
  g.output(t);
}
void open_reshapes(GraphMaker& g, int n) {
  std::string t = g.input({"a", 4, 6});
  for (int i = 0; i < n; ++i) {
    t = g.node("Reshape", {t, g.integers(i % 2 ? Integers{-1, 4, 6} : Integers{4, -1, 6})});
    t = g.node("Transpose", {t}, {{"perm", Integers{1, 0, 2}}});
  }
  g.output(t);
}
void slices(GraphMaker& g, int n) {
  std::string t = g.input({4096});
  for (int i = 0; i < n; ++i)
    t = g.node("Neg", {g.node("Slice", {t, g.integers({1}), g.integers({-1})})});
  g.output(t);
}
void slices_of_one(GraphMaker& g, int n) {
  const std::string x = g.input({n + int64_t{64}});
  Names terms;
  for (int64_t i = 0; i < n; ++i)
    terms.push_back(g.node("Slice", {x, g.integers({i}), g.integers({i + 64})}));
  g.output(g.node("Sum", terms));
}
void pads(GraphMaker& g, int n) {
  std::string t = g.input({4096});
  for (int i = 0; i < n; ++i) {
    t = g.node("Pad", {t, g.integers({1, 1})}, {{"mode", i % 2 ? "edge" : "constant"}});
    t = g.node("Neg", {t});
  }
  g.output(t);
}
void gathers(GraphMaker& g, int n) {
  std::string t = g.input({16, 4});
  const std::string rows = g.input({16}, kI64);
  for (int i = 0; i < n; ++i) t = g.node("Tanh", {g.node("Gather", {t, rows})});
  g.output(t);
}
void scatters(GraphMaker& g, int n) {
  std::string t = g.input({16, 4});
  const std::string at = g.input({3, 1}, kI64), rows = g.input({3, 4});
  for (int i = 0; i < n; ++i) t = g.node("Tanh", {g.node("ScatterND", {t, at, rows})});
  g.output(t);
}
void expands(GraphMaker& g, int n) {
  std::string t = g.input({1, 8});
  for (int i = 0; i < n; ++i) {
    t = g.node("Expand", {t, g.integers({8, 8})});
    t = g.node("ReduceMax", {t, g.integers({0})}, {{"keepdims", int64_t{1}}});
  }
  g.output(t);
}
// Shape -> Gather -> Concat -> Reshape, again and again.
void computed_shapes(GraphMaker& g, int n) {
  std::string t = g.input({"a", "b", 4});
  for (int i = 0; i < n; ++i) {
    const std::string shape = g.node("Shape", {t});
    const std::string a = g.node("Gather", {shape, g.integers({0})});
    const std::string b = g.node("Gather", {shape, g.integers({1})});
    const std::string to = g.node("Concat", {b, a, g.integers({-1})}, {{"axis", int64_t{0}}});
    t = g.node("Relu", {g.node("Reshape", {t, to})});
  }
  g.output(t);
}
// Extents that grow from value to value.
void growing_extents(GraphMaker& g, int n) {
  std::string t = g.input({"a", 4}), sum = g.input({4});
  for (int i = 0; i < n; ++i) {
    t = g.node("Concat", {t, g.input({i % 3 ? Dim("b") : Dim("a"), 4})}, {{"axis", int64_t{0}}});
    sum =
        g.node("Add", {sum, g.node("ReduceSum", {t, g.integers({0})}, {{"keepdims", int64_t{0}}})});
  }
  g.output(sum);
}
void computed_numbers(GraphMaker& g, int n) {
  const std::string x = g.input({"a"});
  std::string size = g.node("Shape", {x});
  for (int i = 0; i < n; ++i) {
    const std::string more = g.node(i % 2 ? "Add" : "Mul", {size, g.integers({i % 7 + 1})});
    size = g.node("Div", {more, g.integers({i % 5 + 1})});
  }
  g.output(g.node("Expand", {g.scalar(1, {1}), size}));
}
// Each size is the larger or the smaller of two that are made of the one before.
void joined_numbers(GraphMaker& g, int n) {
  std::string size = g.node("Shape", {g.input({"a"})});
  for (int i = 0; i < n; ++i) {
    const std::string less = g.node("Div", {size, g.integers({i % 6 + 2})});
    const std::string more = g.node("Mul", {size, size});
    size = g.node(i % 2 ? "Min" : "Max", {less, more});
  }
  g.output(g.node("Expand", {g.scalar(1, {1}), size}));
}

}  // namespace

std::span<const Kind> movements() {
  static constexpr Kind kKinds[] = {
      {"reshapes", reshapes, 50},
      {"open_reshapes", open_reshapes, 100},
      {"slices", slices, 20},
      {"slices_of_one", slices_of_one, 25},
      {"pads", pads, 15},
      {"gathers", gathers, 25},
      {"scatters", scatters, 25},
      {"expands", expands, 25},
      {"computed_shapes", computed_shapes, 20},
      {"growing_extents", growing_extents, 5},
      {"joined_numbers", joined_numbers, 10},
      {"computed_numbers", computed_numbers, 20},
  };
  return kKinds;
}

}  // namespace tilewright::growth
