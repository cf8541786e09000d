// Pointwise operators before the concat that interleaves, and those that must stay behind it.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_sunk(const std::string& lines, const std::string& after) {
  SCOPED_TRACE(lines);
  expect_graph(parsed_graph(lines), sink_interleaving(parsed_graph(lines)), after);
}
void expect_left(const std::string& lines) { expect_sunk(lines, lines); }
// y = the operator of c, which interleaves a and b along dimension 2.
std::string of_interleaved(const std::string& rest, const std::string& more = "",
                           const std::string& attributes = "{axis = 2, interleave = 1}") {
  return "  input a: f32[1, 2, 3, 4]\n  input b: f32[1, 2, 3, 4]\n" + more +
         "  c: f32[1, 2, 6, 4] = concat(a, b) " + attributes + "\n" + rest +
         "  output y as \"y\"\n";
}

TEST(SinkInterleaving, AUnaryOperator) {
  expect_sunk(of_interleaved("  y: f32[1, 2, 6, 4] = relu(c)\n"), R"(  input a: f32[1, 2, 3, 4]
  input b: f32[1, 2, 3, 4]
  y: f32[1, 2, 3, 4] = relu(a)
  y_1: f32[1, 2, 3, 4] = relu(b)
  y_2: f32[1, 2, 6, 4] = concat(y, y_1) {axis = 2, interleave = 1}
  output y_2 as "y"
)");
}

// A constant along the channels, on either side; what is done to the result sinks as well.
TEST(SinkInterleaving, AChainWithABias) {
  expect_sunk(of_interleaved("  s: f32[1, 2, 6, 4] = sub(k, c)\n  y: f32[1, 2, 6, 4] = relu(s)\n",
                             "  const k: f32[2, 1, 1] = [1.0, -2.0]\n"),
              R"(  input a: f32[1, 2, 3, 4]
  input b: f32[1, 2, 3, 4]
  const k: f32[2, 1, 1] = [1.0, -2.0]
  s: f32[1, 2, 3, 4] = sub(k, a)
  s_1: f32[1, 2, 3, 4] = sub(k, b)
  y: f32[1, 2, 3, 4] = relu(s)
  y_1: f32[1, 2, 3, 4] = relu(s_1)
  y_2: f32[1, 2, 6, 4] = concat(y, y_1) {axis = 2, interleave = 1}
  output y_2 as "y"
)");
}

// Rows of rows, as a transposed convolution leaves them.
TEST(SinkInterleaving, NestedOnes) {
  expect_sunk(R"(  input a: f32[1, 1, 2, 2]
  input b: f32[1, 1, 2, 2]
  input p: f32[1, 1, 2, 4]
  const k: f32[1] = [3.0]
  c: f32[1, 1, 2, 4] = concat(a, b) {axis = 3, interleave = 1}
  d: f32[1, 1, 4, 4] = concat(c, p) {axis = 2, interleave = 1}
  y: f32[1, 1, 4, 4] = mul(d, k)
  output y as "y"
)",
              R"(  input a: f32[1, 1, 2, 2]
  input b: f32[1, 1, 2, 2]
  input p: f32[1, 1, 2, 4]
  const k: f32[1] = [3.0]
  y: f32[1, 1, 2, 2] = mul(a, k)
  y_1: f32[1, 1, 2, 2] = mul(b, k)
  y_2: f32[1, 1, 2, 4] = concat(y, y_1) {axis = 3, interleave = 1}
  y_3: f32[1, 1, 2, 4] = mul(p, k)
  y_4: f32[1, 1, 4, 4] = concat(y_2, y_3) {axis = 2, interleave = 1}
  output y_4 as "y"
)");
}

TEST(SinkInterleaving, WhatVariesAlongTheAxisStays) {
  expect_left(of_interleaved("  y: f32[1, 2, 6, 4] = add(c, k)\n",
                             "  const k: f32[6, 1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\n"));
  // Nor along the axis of the concat inside.
  expect_left(R"(  input a: f32[1, 1, 2, 2]
  input b: f32[1, 1, 2, 2]
  input p: f32[1, 1, 2, 4]
  const k: f32[4] = [1.0, 2.0, 3.0, 4.0]
  c: f32[1, 1, 2, 4] = concat(a, b) {axis = 3, interleave = 1}
  d: f32[1, 1, 4, 4] = concat(c, p) {axis = 2, interleave = 1}
  y: f32[1, 1, 4, 4] = mul(d, k)
  output y as "y"
)");
}
TEST(SinkInterleaving, WhatOnlyTheRunKnowsStays) {
  expect_left(of_interleaved("  y: f32[1, 2, 6, 4] = add(c, k)\n", "  input k: f32[]\n"));
}
TEST(SinkInterleaving, ReadersThatAreNotAlone) {
  expect_left(of_interleaved("  y: f32[1, 2, 6, 4] = relu(c)\n  output c as \"c\"\n"));
}
TEST(SinkInterleaving, OtherOperatorsAndOtherConcatsStay) {
  expect_left(of_interleaved("  y: f32[1, 2, 6, 1] = reduce_sum(c) {axes = [3]}\n"));
  expect_left(of_interleaved("  y: f32[1, 2, 6, 4] = relu(c)\n", "", "{axis = 2}"));
  // The operand is broadcast.
  expect_left(of_interleaved("  y: f32[3, 2, 6, 4] = add(c, k)\n",
                             "  const k: f32[3, 1, 1, 1] = [1.0, 2.0, 3.0]\n"));
  // A constant of more dimensions.
  expect_left(R"(  input a: f32[3]
  input b: f32[3]
  const k: f32[1, 1] = [2.0]
  c: f32[6] = concat(a, b) {axis = 0, interleave = 1}
  y: f32[1, 6] = mul(c, k)
  output y as "y"
)");
}

}  // namespace
}  // namespace tilewright::passes
