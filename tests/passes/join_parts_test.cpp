// Parts of a concat and what a pad surrounds: stored where they belong, or copied there.
#include "tests/passes/plan_check.h"

namespace tilewright::passes {
namespace {

void expect_placed(const std::string& lines, const std::string& placements) {
  SCOPED_TRACE(lines);
  EXPECT_EQ(PlannedGraph(lines, 1).text(), placements);
}
void expect_apart(const std::string& lines) { expect_placed(lines, ""); }

// c joins a and b, both made here, along dimension 1.
std::string joined(const std::string& a = "relu(x) group 0",
                   const std::string& b = "neg(x) group 1", const std::string& more = "",
                   const std::string& operands = "a, b",
                   const std::string& attributes = "{axis = 1} group 2") {
  return "  input x: f32[3, 16]\n  a: f32[3, 16] = " + a + "\n  b: f32[3, 16] = " + b + "\n" +
         more + "  c: f32[3, 32] = concat(" + operands + ") " + attributes +
         "\n  output c as \"c\"\n";
}

TEST(ChooseAliases, PartsOfAConcat) {
  expect_placed(joined(), R"(  a lies in c at (0, 0) by (1 of d0, 1 of d1) a part of c
  b lies in c at (0, 16) by (1 of d0, 1 of d1) a part of c
)");
}
// Half of the result is worth it, less is not.
TEST(ChooseAliases, ConcatsThatSaveTooLittle) {
  const std::string result = "  output a as \"a\"\n";
  expect_placed(joined("relu(x) group 0", "neg(x) group 1", result),
                "  b lies in c at (0, 16) by (1 of d0, 1 of d1) a part of c\n");
  const std::string third =
      "  input x: f32[3, 16]\n  input v: f32[3, 17]\n  a: f32[3, 16] = relu(x) group 0\n"
      "  c: f32[3, 33] = concat(a, v) {axis = 1} group 2\n  output c as \"c\"\n";
  expect_apart(third);
}
TEST(ChooseAliases, PartsOfGroupsAndRepeatedPartsAreCopied) {
  // A node that shares the concat's group reads its operands, and writes no buffer of its own.
  expect_apart(joined("relu(x) group 0", "neg(x) group 1", "", "a, b", "{axis = 1} group 1"));
  expect_apart(joined("relu(x) group 0", "neg(x) group 1", "", "a, a"));
}
TEST(ChooseAliases, RowsThatAreTooShort) {
  for (const std::string columns : {"16", "15"}) {
    const std::string both = std::to_string(2 * std::stoi(columns));
    const std::string lines = "  input x: f32[3, " + columns + "]\n  a: f32[3, " + columns +
                              "] = relu(x) group 0\n  b: f32[3, " + columns +
                              "] = neg(x) group 1\n  c: f32[3, " + both +
                              "] = concat(a, b) {axis = 1} group 2\n  output c as \"c\"\n";
    SCOPED_TRACE(lines);
    EXPECT_EQ(PlannedGraph(lines, 1).plan->aliases.size(), columns == "16" ? 2u : 0u);
  }
  // One stretch may be as short as it likes.
  expect_placed(R"(  input x: f32[1, 2]
  a: f32[1, 2] = relu(x) group 0
  b: f32[1, 2] = neg(x) group 1
  c: f32[2, 2] = concat(a, b) {axis = 0} group 2
  output c as "c"
)",
                R"(  a lies in c at (0, 0) by (1 of d0, 1 of d1) a part of c, from byte 0
  b lies in c at (1, 0) by (1 of d0, 1 of d1) a part of c
)");
}
TEST(ChooseAliases, InterleavedParts) {
  const std::string lines = R"(  input x: f32[2, 3, 16]
  a: f32[2, 3, 16] = relu(x) group 0
  b: f32[2, 3, 16] = neg(x) group 1
)";
  expect_placed(lines +
                    "  c: f32[2, 6, 16] = concat(a, b) {axis = 1, interleave = 1} group 2\n"
                    "  output c as \"c\"\n",
                R"(  a lies in c at (0, 0, 0) by (1 of d0, 2 of d1, 1 of d2) a part of c
  b lies in c at (0, 1, 0) by (1 of d0, 2 of d1, 1 of d2) a part of c
)");
  // Neighbours in a row would be of two kernels.
  expect_apart(lines +
               "  c: f32[2, 3, 32] = concat(a, b) {axis = 2, interleave = 1} group 2\n"
               "  output c as \"c\"\n");
}
// A concat in a concat: its parts lie in the outermost.
TEST(ChooseAliases, ConcatsOfConcats) {
  expect_placed(R"(  input x: f32[3, 16]
  a: f32[3, 16] = relu(x) group 0
  b: f32[3, 16] = neg(x) group 1
  e: f32[3, 16] = exp(x) group 2
  c: f32[3, 32] = concat(a, b) {axis = 1} group 3
  d: f32[3, 48] = concat(e, c) {axis = 1} group 4
  output d as "d"
)",
                R"(  a lies in d at (0, 16) by (1 of d0, 1 of d1) a part of c
  b lies in d at (0, 32) by (1 of d0, 1 of d1) a part of c
  e lies in d at (0, 0) by (1 of d0, 1 of d1) a part of d
  c lies in d at (0, 16) by (1 of d0, 1 of d1) a part of d
)");
}

// y surrounds r by one in each of the last dimensions.
std::string padded(const std::string& pads, const std::string& more = "",
                   const std::string& type = "f32[1, 16, 5, 6]",
                   const std::string& attributes = "{mode = \"constant\"}") {
  return "  input x: f32[1, 16, 4, 4]\n  const p: i64[8] = " + pads +
         "\n  r: f32[1, 16, 4, 4] layout(d0, d2, d3, d1) = relu(x) group 0\n  y: " + type +
         " layout(d0, d2, d3, d1) = pad(r, p) " + attributes + " group 1\n  z: " + type +
         " = neg(y) group 2\n  output z as \"z\"\n" + more;
}
TEST(ChooseAliases, WhatAPadSurrounds) {
  expect_placed(
      padded("[0, 0, 1, 1, 0, 0, 0, 1]"),
      "  r lies in y at (0, 0, 1, 1) by (1 of d0, 1 of d1, 1 of d2, 1 of d3) a part of y\n");
}
TEST(ChooseAliases, PaddingThatIsCopied) {
  // Another mode, a part cut away, and a result of the graph.
  expect_apart(padded("[0, 0, 1, 1, 0, 0, 0, 1]", "", "f32[1, 16, 5, 6]", "{mode = \"edge\"}"));
  expect_apart(padded("[0, 0, 1, 1, 0, 0, 0, -1]", "", "f32[1, 16, 5, 4]"));
  const std::string rows = R"(  input x: f32[1, 4, 4, 16]
  const p: i64[8] = [0, 1, 1, 0, 0, 0, 1, 0]
  r: f32[1, 4, 4, 16] = relu(x) group 0
  y: f32[1, 5, 6, 16] = pad(r, p) {mode = "constant"} group 1
  z: f32[1, 5, 6, 16] = neg(y) group 2
  output z as "z"
)";
  expect_placed(
      rows, "  r lies in y at (0, 1, 1, 0) by (1 of d0, 1 of d1, 1 of d2, 1 of d3) a part of y\n");
  expect_apart(rows + "  output r as \"r\"\n");
}

}  // namespace
}  // namespace tilewright::passes
