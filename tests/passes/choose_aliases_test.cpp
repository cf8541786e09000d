// Which values lie in another's memory, and where; and those that have memory of their own.
#include "tests/passes/plan_check.h"

namespace tilewright::passes {
namespace {

void expect_placed(const std::string& lines, const std::string& placements) {
  SCOPED_TRACE(lines);
  EXPECT_EQ(PlannedGraph(lines, 1).text(), placements);
}
void expect_apart(const std::string& lines) { expect_placed(lines, ""); }

// s: rows and columns of x, by a step.
std::string slice_of(
    const std::string& type, const std::string& numbers,
    const std::string& y = "  y: f32[4, 2] = neg(s) group 1\n  output y as \"y\"\n") {
  return "  input x: f32[8, 4]\n  const b: i64[2] = " + numbers + "\n  s: " + type +
         " = slice(x, b, e, d, p) group 0\n" + y;
}
std::string slice_constants(const std::string& ends, const std::string& steps) {
  return "  const e: i64[2] = " + ends +
         "\n  const d: i64[2] = [0, 1]\n  const p: i64[2] = " + steps + "\n";
}

TEST(ChooseAliases, SlicesLieInTheirOperand) {
  expect_placed(slice_constants("[8, 3]", "[2, 1]") + slice_of("f32[4, 2]", "[0, 1]"),
                "  s lies in x at (0, 1) by (2 of d0, 1 of d1)\n");
  // Backwards, too.
  expect_placed(slice_constants("[-9, 2]", "[-2, 1]") + slice_of("f32[4, 2]", "[7, 0]"),
                "  s lies in x at (7, 0) by (-2 of d0, 1 of d1)\n");
}
TEST(ChooseAliases, SlicesAcrossVectorsAreCopied) {
  expect_apart(slice_constants("[4, 4]", "[1, 2]") + slice_of("f32[4, 2]", "[0, 0]"));
}
TEST(ChooseAliases, SlicesThatAreResultsAreCopied) {
  expect_apart(slice_constants("[8, 3]", "[2, 1]") +
               slice_of("f32[4, 2]", "[0, 1]", "  output s as \"s\"\n"));
}
TEST(ChooseAliases, SlicesInAGroupWithOthersAreNoValues) {
  expect_apart(
      slice_constants("[8, 3]", "[2, 1]") +
      slice_of("f32[4, 2]", "[0, 1]", "  y: f32[4, 2] = neg(s) group 0\n  output y as \"y\"\n"));
}
TEST(ChooseAliases, SlicesOfConstantsAndOfOtherLayoutsAreCopied) {
  expect_apart(R"(  const x: f32[4] = [1.0, 2.0, 3.0, 4.0]
  const b: i64[1] = [0]
  const e: i64[1] = [2]
  s: f32[2] = slice(x, b, e) group 0
  y: f32[2] = neg(s) group 1
  output y as "y"
)");
  expect_apart(R"(  input x: f32[8, 4]
  const b: i64[1] = [0]
  const e: i64[1] = [2]
  s: f32[2, 4] layout(d1, d0) = slice(x, b, e) group 0
  y: f32[2, 4] = neg(s) group 1
  output y as "y"
)");
}
// Where the slice starts is known at the run alone.
TEST(ChooseAliases, SlicesFromUnknownPlacesAreCopied) {
  expect_apart(R"(  input x: f32[8, 4]
  input b: i64[1]
  input e: i64[1]
  s: f32[n, 4] = slice(x, b, e) defines(n) group 0
  y: f32[n, 4] = neg(s) group 1
  output y as "y"
)");
}

// Views of a slice lie where it lies; where a view has no such place, nothing does.
TEST(ChooseAliases, ViewsFollowASlice) {
  const std::string start = R"(  input x: f32[8, 12]
  const b: i64[2] = [2, 4]
  const e: i64[2] = [6, 12]
  const n: i64[3] = [4, 2, 4]
  const m: i64[1] = [32]
  s: f32[4, 8] = slice(x, b, e) group 0
)";
  expect_placed(start + R"(  r: f32[4, 2, 4] = reshape(s, n) group 1
  t: f32[2, 4, 4] layout(d1, d0, d2) = transpose(r) {perm = [1, 0, 2]} group 2
  y: f32[2, 4, 4] = neg(t) group 3
  output y as "y"
)",
                R"(  s lies in x at (2, 4) by (1 of d0, 1 of d1)
  r lies in x at (2, 4) by (1 of d0, 4 of d1, 1 of d1)
  t lies in x at (2, 4) by (4 of d1, 1 of d0, 1 of d1)
)");
  expect_apart(start + R"(  r: f32[32] = reshape(s, m) group 1
  y: f32[32] = neg(r) group 2
  output y as "y"
)");
}
TEST(ChooseAliases, SlicesOfSlices) {
  expect_placed(R"(  input x: f32[16, 4]
  const b: i64[1] = [3]
  const e: i64[1] = [16]
  const d: i64[1] = [0]
  const p: i64[1] = [2]
  s: f32[7, 4] = slice(x, b, e, d, p) group 0
  t: f32[2, 4] = slice(s, b, e, d, p) group 1
  y: f32[2, 4] = neg(t) group 2
  output y as "y"
)",
                R"(  s lies in x at (3, 0) by (2 of d0, 1 of d1)
  t lies in x at (9, 0) by (4 of d0, 1 of d1)
)");
}

}  // namespace
}  // namespace tilewright::passes
