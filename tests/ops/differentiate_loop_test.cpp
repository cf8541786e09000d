// Gradients through loops.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/module_text/parser_graph.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/program_gradients.h"

namespace tilewright {
namespace {

// A recurrent network: carried, scanned and captured values, a carried integer, elements of x.
constexpr const char* kSteps = R"(graph steps {
  input n: i64[]
  input x: f64[4, 3]
  input h: f64[3]
  input w: f64[3, 3]
  const zero: i64[] = [0]
  last: f64[3], _, all: f64[k, 3] = loop(n, _, h, zero, w, x) {carried = 2, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f64[3]
      input count: i64[]
      input w: f64[3, 3]
      input x: f64[4, 3]
      const one: i64[] = [1]
      next: i64[] = add(count, one)
      row: f64[3] = gather(x, count) {axis = 0}
      p: f64[3] = matmul(w, u)
      s: f64[3] = add(p, row)
      y: f64[3] = tanh(s)
      z: f64[3] = mul(y, u)
      output y as "y"
      output next as "next"
      output z as "z"
    }
  ] defines(k)
  a: f64[] = reduce_sum(all) {keepdims = 0}
  b: f64[3] = mul(last, last)
  c: f64[] = reduce_sum(b) {keepdims = 0}
  loss: f64[] = add(a, c)
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, LoopsRunInReverse) {
  const HostTensor x = f64({4, 3}, {0.3, -0.2, 0.9, 0.1, 0.5, -0.7, 0.8}),
                   h = f64({3}, {0.2, -0.5, 0.6}),
                   w = f64({3, 3}, {0.4, -0.3, 0.2, 0.7, 0.1, -0.6, 0.5});
  for (int n : {0, 1, 4}) {
    SCOPED_TRACE(n);
    const Tensors g = checked_gradients(kSteps, {whole(n), x, h, w});
    ASSERT_EQ(g.size(), 3u);
    EXPECT_EQ(all_zero(g[2]), n == 0);
  }
}
// The number of iterations is known, so that no extent depends on the run.
TEST(DifferentiateLoops, LoopsOfKnownLength) {
  std::string text = kSteps;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("input n: i64[]\n", "const n: i64[] = [4]\n");
  replace("f64[k, 3]", "f64[4, 3]");
  replace(" defines(k)", "");
  checked_gradients(text, {f64({4, 3}, {0.3, -0.2, 0.9, 0.1, 0.5}), f64({3}, {0.2, -0.5, 0.6}),
                           f64({3, 3}, {0.4, -0.3, 0.2, 0.7})});
}

// What the body looks up: along the second axis, from the end, several elements at once, and twice of
// one value, in which others are read never.
constexpr const char* kLookups = R"(graph lookups {
  input n: i64[]
  input last: i64[]
  input x: f64[2, 5]
  input h: f64[2]
  y: f64[2], all: f64[k, 2] = loop(n, _, h, x, last) {carried = 1, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f64[2]
      input x: f64[2, 5]
      input last: i64[]
      at: i64[] = sub(last, i)
      column: f64[2] = gather(x, at) {axis = 1, clamps = 1}
      const ends: i64[2] = [0, -1]
      pair: f64[2, 2] = gather(x, ends) {axis = 1}
      p: f64[2] = matmul(pair, u)
      s: f64[2] = add(p, column)
      y: f64[2] = tanh(s)
      output y as "y"
      output u as "u"
    }
  ] defines(k)
  a: f64[] = reduce_sum(all) {keepdims = 0}
  b: f64[] = reduce_sum(y) {keepdims = 0}
  c: f64[] = mul(b, b)
  loss: f64[] = add(a, c)
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, ElementsThatAreLookedUp) {
  const HostTensor x = f64({2, 5}, {0.3, -0.2, 0.9, 0.1, 0.5, -0.7, 0.8}), h = f64({2}, {0.2, 0.6});
  for (int n : {0, 1, 3}) {
    SCOPED_TRACE(n);
    checked_gradients(kLookups, {whole(n), whole(3), x, h});
  }
}

// Newton's square root: the data say when it is near enough. x' = (x + a / x) / 2.
constexpr const char* kUntil = R"(graph until {
  input a: f64[1]
  input x: f64[1]
  root: f64[1] = loop(_, _, x, a) {carried = 1, has_condition = 1} with [
    graph step {
      input i: i64[]
      input v: f64[1]
      input a: f64[1]
      q: f64[1] = div(a, v)
      s: f64[1] = add(v, q)
      const half: f64[] = [0.5]
      w: f64[1] = mul(s, half)
      square: f64[1] = mul(w, w)
      off: f64[1] = sub(square, a)
      size: f64[1] = abs(off)
      const enough: f64[] = [1e-12]
      go: bool[1] = greater(size, enough)
      output go as "go"
      output w as "w"
    }
  ]
  loss: f64[] = reduce_sum(root) {keepdims = 0}
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, AConditionEndsTheLoop) {
  const Tensors g = checked_gradients(kUntil, {f64({1}, {7}), f64({1}, {2})});
  ASSERT_EQ(g.size(), 2u);
  EXPECT_NEAR(element(g[0], 0), 0.5 / std::sqrt(7.0), 1e-9);  // of the root itself
  EXPECT_NEAR(element(g[1], 0), 0, 1e-6);
}

// Carried values exchange places, one is passed through, one result is not asked for; a branch and a
// loop inside.
constexpr const char* kNested = R"(graph nested {
  input n: i64[]
  input a: f64[2]
  input b: f64[2]
  input s: f64[]
  p: f64[2], _, same: f64[] = loop(n, _, a, b, s, n) {carried = 3, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f64[2]
      input v: f64[2]
      input s: f64[]
      input n: i64[]
      const one: i64[] = [1]
      odd: i64[] = and(i, one)
      is_odd: bool[] = equal(odd, one)
      x: f64[2] = if(is_odd, u, s) with [
        graph then {
          input u: f64[2]
          input s: f64[]
          x: f64[2] = mul(u, s)
          output x as "x"
        }
        graph otherwise {
          input u: f64[2]
          input s: f64[]
          x: f64[2] = sin(u)
          output x as "x"
        }
      ]
      y: f64[2] = loop(n, _, v, x) {carried = 1, has_condition = 0} with [
        graph inner {
          input j: i64[]
          input v: f64[2]
          input x: f64[2]
          w: f64[2] = mul(v, x)
          z: f64[2] = sigmoid(w)
          output z as "z"
        }
      ]
      output y as "y"
      output x as "x"
      output s as "s"
    }
  ]
  q: f64[2] = mul(p, same)
  loss: f64[] = reduce_sum(q) {keepdims = 0}
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, RegionsWithinRegions) {
  for (int n : {0, 1, 3}) {
    SCOPED_TRACE(n);
    checked_gradients(kNested,
                      {whole(n), f64({2}, {0.3, -0.8}), f64({2}, {1.2, 0.5}), f64({}, {0.7})});
  }
}

// Nothing is carried: scans alone, and elements whose number only the run knows.
constexpr const char* kScans = R"(graph scans {
  input n: i64[]
  input c: bool[3]
  input x: f64[3]
  input y: f64[2]
  all: f64[k] = loop(n, _, c, x, y) {carried = 0, has_condition = 0} with [
    graph step {
      input i: i64[]
      input c: bool[3]
      input x: f64[3]
      input y: f64[2]
      chosen: f64[m] = compress(x, c) {axis = 0} defines(m)
      square: f64[m] = mul(chosen, chosen)
      sum: f64[] = reduce_sum(square) {keepdims = 0}
      e: f64[] = gather(y, i) {axis = 0}
      p: f64[] = mul(sum, e)
      output p as "p"
    }
  ] defines(k)
  loss: f64[] = reduce_sum(all) {keepdims = 0}
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, ScansAlone) {
  for (int n : {0, 1, 2})
    checked_gradients(kScans, {whole(n), repeated(DType::kBool, {3}, {1, 0, 1}),
                               f64({3}, {0.5, 2, -1.5}), f64({2}, {0.7, -0.4})});
}

// What is carried is made anew each time, and the scan is not asked for: only the last iteration
// matters, if there is one.
constexpr const char* kAnew = R"(graph anew {
  input n: i64[]
  input x: f64[2]
  input c: f64[2]
  y: f64[2], _ = loop(n, _, x, c) {carried = 1, has_condition = 0} with [
    graph step {
      input i: i64[]
      input u: f64[2]
      input c: f64[2]
      z: f64[2] = mul(c, c)
      output z as "z"
      output z as "all"
    }
  ] defines(k)
  loss: f64[] = reduce_sum(y) {keepdims = 0}
  output loss as "loss"
}
)";

TEST(DifferentiateLoops, WhatIsMadeAnew) {
  for (int n : {0, 1, 3}) {
    const Tensors g = checked_gradients(kAnew, {whole(n), f64({2}, {1, 2}), f64({2}, {0.5, -3})});
    ASSERT_EQ(g.size(), 2u);
    EXPECT_EQ(element(g[0], 0), n == 0 ? 1 : 0);
    EXPECT_EQ(element(g[1], 1), n == 0 ? 0 : -6);
  }
}

TEST(DifferentiateLoops, ObstaclesWithinRegionsAreNamed) {
  std::string text = kUntil;
  text.replace(text.find("s: f64[1] = add(v, q)"), 21,
               "bits: f64[1] = bit_cast(v) {to = \"f64\"}\n      s: f64[1] = add(bits, q)");
  auto graph = ir::parse_graph(text);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto found = passes::differentiate(*graph, graph->outputs[0], graph->inputs);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(found.error().to_string().find("bit_cast"), std::string::npos)
      << found.error().to_string();
}

}  // namespace
}  // namespace tilewright
