// Which indices are checked at the run, which at compile time, and which by no one.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_checked(const std::string& lines, const std::string& after, bool inside = false) {
  SCOPED_TRACE(lines);
  auto checked = check_indices(parsed_graph(lines), inside);
  ASSERT_TRUE(checked.ok()) << checked.error().to_string();
  auto verified = ir::verify(*checked);
  EXPECT_TRUE(verified.ok()) << verified.error().to_string();
  EXPECT_EQ(ir::to_text(*checked), "graph g {\n" + after + "}\n");
}
void expect_left(const std::string& lines) { expect_checked(lines, lines); }
void expect_refused(const std::string& lines, const std::string& phrase) {
  SCOPED_TRACE(lines);
  auto checked = check_indices(parsed_graph(lines), false);
  ASSERT_FALSE(checked.ok()) << ir::to_text(*checked);
  EXPECT_NE(checked.error().to_string().find(phrase), std::string::npos)
      << checked.error().to_string();
}

TEST(CheckIndices, ThoseOfTheRun) {
  expect_checked(R"(  input x: f32[4, 6]
  input i: i64[3]
  y: f32[4, 3] = gather(x, i) {axis = 1}
  output y as "y"
)",
                 R"(  input x: f32[4, 6]
  input i: i64[3]
  y: u64[1] = farthest_index(i) {extents = extents[6]}
  y_1: i64[3] = checked_indices(i, y) {dim = 1, extents = extents[6], node = "gather"}
  y_2: f32[4, 3] = gather(x, y_1) {axis = 1}
  output y_2 as "y"
)");
}

// One check for all that point into as many elements; another for other extents.
TEST(CheckIndices, OncePerExtents) {
  expect_checked(R"(  input x: f32[4, 6]
  input z: f32[6]
  input i: i64[3]
  a: f32[4, 3] = gather(x, i) {axis = 1}
  b: f32[3] = gather(z, i)
  c: f32[3, 6] = gather(x, i)
  output a as "a"
  output b as "b"
  output c as "c"
)",
                 R"(  input x: f32[4, 6]
  input z: f32[6]
  input i: i64[3]
  a: u64[1] = farthest_index(i) {extents = extents[6]}
  a_1: i64[3] = checked_indices(i, a) {dim = 1, extents = extents[6], node = "gather"}
  a_2: f32[4, 3] = gather(x, a_1) {axis = 1}
  b: f32[3] = gather(z, a_1)
  c: u64[1] = farthest_index(i) {extents = extents[4]}
  c_1: i64[3] = checked_indices(i, c) {dim = 0, extents = extents[4], node = "gather"}
  c_2: f32[3, 6] = gather(x, c_1)
  output a_2 as "a"
  output b as "b"
  output c_2 as "c"
)");
}

// Lengths and classes do not count from the end, and their copy is the checked operand.
TEST(CheckIndices, OtherIntegersStartAtZero) {
  expect_checked(R"(  input x: i32[3]
  y: i32[3] = within(x) {extents = extents[6], what = "a length"}
  output y as "y"
)",
                 R"(  input x: i32[3]
  y: u64[1] = farthest_index(x) {extents = extents[6], from_zero = 1}
  y_1: i32[3] = checked_indices(x, y) {dim = -1, extents = extents[6], node = "a length"}
  output y_1 as "y"
)");
  expect_refused(R"(  const x: i32[2] = [5, -1]
  y: i32[2] = within(x) {extents = extents[6], what = "a length"}
  output y as "y"
)",
                 "a length is -1, expected 0 to 5");
}

// Each column of the indices points into a dimension of its own.
TEST(CheckIndices, EachColumnIntoItsDimension) {
  expect_checked(R"(  input x: f32[4, 6, 2]
  input i: i64[3, 2]
  y: f32[3, 2] = gather_nd(x, i)
  output y as "y"
)",
                 R"(  input x: f32[4, 6, 2]
  input i: i64[3, 2]
  y: u64[2] = farthest_index(i) {extents = extents[4, 6]}
  y_1: i64[3, 2] = checked_indices(i, y) {dim = 0, extents = extents[4, 6], node = "gather_nd"}
  y_2: f32[3, 2] = gather_nd(x, y_1)
  output y_2 as "y"
)");
}

TEST(CheckIndices, KnownOnesInRangeCostNothing) {
  expect_left(R"(  input x: f32[4, 6]
  const i: i64[4] = [0, 5, -1, -6]
  y: f32[4, 4] = gather(x, i) {axis = 1}
  output y as "y"
)");
  expect_left(R"(  input x: f32[4, 6]
  const i: i64[2, 2] = [3, 5, -4, -6]
  y: f32[2] = gather_nd(x, i)
  output y as "y"
)");
  expect_left(R"(  input x: f32[4, 6]
  y: f32[4, 6] = relu(x)
  output y as "y"
)");
}

TEST(CheckIndices, KnownOnesOutOfRangeAreErrors) {
  for (const std::string i : {"6", "-7"})
    expect_refused("  input x: f32[4, 6]\n  const i: i64[2] = [0, " + i +
                       "]\n  y: f32[4, 2] = gather(x, i) {axis = 1}\n  output y as \"y\"\n",
                   "index " + i);
  // In range of the other dimension.
  expect_refused(R"(  input x: f32[4, 6]
  const i: i64[2, 2] = [3, 5, 5, 3]
  y: f32[2] = gather_nd(x, i)
  output y as "y"
)",
                 "index 5");
}

// A branch that is never taken may hold anything.
TEST(CheckIndices, KnownOnesOutOfRangeInsideARegionAreCheckedAtTheRun) {
  expect_checked(R"(  input x: f32[6]
  const i: i64[2] = [0, 6]
  y: f32[2] = gather(x, i)
  output y as "y"
)",
                 R"(  input x: f32[6]
  const i: i64[2] = [0, 6]
  y: u64[1] known [12:u64] = farthest_index(i) {extents = extents[6]}
  y_1: i64[2] = checked_indices(i, y) {dim = 0, extents = extents[6], node = "gather"}
  y_2: f32[2] = gather(x, y_1)
  output y_2 as "y"
)",
                 true);
}

// The extent is the run's, and so is the answer.
TEST(CheckIndices, KnownOnesIntoUnknownExtents) {
  expect_checked(R"(  input x: f32[n]
  const i: i64[1] = [2]
  y: f32[1] = gather(x, i)
  output y as "y"
)",
                 R"(  input x: f32[n]
  const i: i64[1] = [2]
  y: u64[1] known [max(0:u64, u64(n + 2))] = farthest_index(i) {extents = extents[n]}
  y_1: i64[1] = checked_indices(i, y) {dim = 0, extents = extents[n], node = "gather"}
  y_2: f32[1] = gather(x, y_1)
  output y_2 as "y"
)");
}

}  // namespace
}  // namespace tilewright::passes
