// Nodes with regions: compiled programs take the right branch, carry values and stack scans.
#include <gtest/gtest.h>

#include "ir/module_text/parser_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using Numbers = std::vector<double>;

HostTensor floats(const Numbers& values) {
  return repeated(DType::kFloat32, {static_cast<int64_t>(values.size())}, values);
}
HostTensor scalar(DType dtype, double value) { return repeated(dtype, {}, {value}); }
Numbers elements(const HostTensor& t) {
  Numbers r;
  for (int64_t i = 0; i < *element_count(t.shape); ++i) r.push_back(element(t, i));
  return r;
}

// Runs the graph fused and unfused; the results of the first, which must be those of the second.
Tensors run(const std::string& text, const Tensors& inputs) {
  auto graph = ir::parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().to_string();
    return {};
  }
  Tensors first;
  for (const CompiledForm& form : {CompiledForm{true, true}, CompiledForm{false, false}}) {
    auto runs = run_compiled(*graph, inputs, form, {1});
    if (!runs.ok()) {
      ADD_FAILURE() << runs.error().to_string();
      return {};
    }
    if (first.empty()) first = (*runs)[0];
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(elements(first[i]), elements((*runs)[0][i]));
  }
  return first;
}

// What is computed before a loop waits while the body, which computes the same, makes values of its
// own in kernels apart.
constexpr const char* kWaiting = R"(graph waiting {
  input n: i64[]
  input x: f32[3, 5]
  most: f32[3, 1] = reduce_max(x) {axes = [1]}
  below: f32[3, 5] = sub(x, most)
  y: f32[3, 5] = loop(n, _, x) {carried = 1, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f32[3, 5]
      m: f32[3, 1] = reduce_max(u) {axes = [1]}
      d: f32[3, 5] = sub(u, m)
      l: f32[1, 5] = reduce_min(d) {axes = [0]}
      e: f32[3, 5] = sub(d, l)
      output e as "e"
    }
  ]
  least: f32[1, 5] = reduce_min(below) {axes = [0]}
  above: f32[3, 5] = sub(below, least)
  sum: f32[3, 5] = add(above, y)
  output sum as "sum"
}
)";

TEST(ControlFlow, ValuesWaitWhileALoopRuns) {
  const HostTensor x = repeated(DType::kFloat32, {3, 5}, {1, 2, 3, 5, 8, 13, 2});
  const Tensors still = run(kWaiting, {scalar(DType::kInt64, 0), x}),
                moved = run(kWaiting, {scalar(DType::kInt64, 1), x});
  ASSERT_EQ(still.size(), 1u);
  ASSERT_EQ(moved.size(), 1u);
  for (int64_t i = 0; i < x.size(); ++i) {
    const double above = element(still[0], i) - element(x, i);
    EXPECT_GE(above, 0) << i;
    EXPECT_EQ(element(moved[0], i), 2 * above) << i;
  }
}

constexpr const char* kBranches = R"(graph branches {
  input c: bool[]
  input x: f32[3]
  y: f32[3], z: f32[3] = if(c, x) with [
    graph then {
      input v: f32[3]
      w: f32[3] = neg(v)
      output w as "w"
      output v as "v"
    }
    graph otherwise {
      input v: f32[3]
      const k: f32[3] = [7.0, 8.0, 9.0]
      output k as "first"
      output k as "second"
    }
  ]
  sum: f32[3] = add(y, x)
  output sum as "sum"
  output z as "z"
}
)";

TEST(ControlFlow, IfTakesOneBranch) {
  const HostTensor x = floats({1, 2, 3});
  Tensors taken = run(kBranches, {scalar(DType::kBool, 1), x});
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(elements(taken[0]), (Numbers{0, 0, 0}));
  EXPECT_EQ(elements(taken[1]), (Numbers{1, 2, 3}));
  Tensors other = run(kBranches, {scalar(DType::kBool, 0), x});
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(elements(other[0]), (Numbers{8, 10, 12}));
  EXPECT_EQ(elements(other[1]), (Numbers{7, 8, 9}));
}

constexpr const char* kExtents = R"(graph extents {
  input c: bool[]
  input x: f32[2]
  y: f32[n] = if(c, x) with [
    graph then {
      input v: f32[2]
      w: f32[4] = concat(v, v) {axis = 0}
      output w as "w"
    }
    graph otherwise {
      input v: f32[2]
      output v as "v"
    }
  ] defines(n)
  z: f32[n] = neg(y)
  output z as "z"
}
)";

TEST(ControlFlow, BranchesMayGiveDifferentExtents) {
  const HostTensor x = floats({1, 2});
  Tensors longer = run(kExtents, {scalar(DType::kBool, 1), x});
  ASSERT_EQ(longer.size(), 1u);
  EXPECT_EQ(elements(longer[0]), (Numbers{-1, -2, -1, -2}));
  Tensors shorter = run(kExtents, {scalar(DType::kBool, 0), x});
  ASSERT_EQ(shorter.size(), 1u);
  EXPECT_EQ(elements(shorter[0]), (Numbers{-1, -2}));
}

// Two values that exchange their places, and a scan of the first.
constexpr const char* kExchange = R"(graph exchange {
  input n: i64[]
  input a: f32[2]
  input b: f32[2]
  p: f32[2], q: f32[2], all: f32[k, 2] = loop(n, _, a, b) {carried = 2, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f32[2]
      input v: f32[2]
      output v as "p"
      output u as "q"
      output u as "seen"
    }
  ] defines(k)
  output p as "p"
  output q as "q"
  output all as "all"
}
)";

TEST(ControlFlow, CarriedValuesMayExchangePlaces) {
  const HostTensor a = floats({1, 2}), b = floats({3, 4});
  for (int n = 0; n <= 3; ++n) {
    Tensors r = run(kExchange, {scalar(DType::kInt64, n), a, b});
    ASSERT_EQ(r.size(), 3u);
    EXPECT_EQ(elements(r[0]), elements(n % 2 ? b : a));
    EXPECT_EQ(elements(r[1]), elements(n % 2 ? a : b));
    EXPECT_EQ(r[2].shape, (Shape{n, 2}));
    for (int i = 0; i < n; ++i) EXPECT_EQ(element(r[2], 2 * i), i % 2 ? 3 : 1);
  }
}

// x + step until a limit is reached.
constexpr const char* kUntil = R"(graph until {
  input x: f32[1]
  input step: f32[1]
  input limit: f32[1]
  y: f32[1], seen: f32[k, 1] = loop(_, _, x, step, limit) {carried = 1, has_condition = 1} with [
    graph step {
      input i: i64[]
      input v: f32[1]
      input s: f32[1]
      input l: f32[1]
      w: f32[1] = add(v, s)
      go: bool[1] = less(w, l)
      output go as "go"
      output w as "w"
      output v as "v"
    }
  ] defines(k)
  output y as "y"
  output seen as "seen"
}
)";

TEST(ControlFlow, ConditionEndsTheLoop) {
  Tensors r = run(kUntil, {floats({0}), floats({2}), floats({5})});
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(elements(r[0]), (Numbers{6}));
  EXPECT_EQ(elements(r[1]), (Numbers{0, 2, 4}));
}

}  // namespace
}  // namespace tilewright
