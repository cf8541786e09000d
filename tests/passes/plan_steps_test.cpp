// The steps of plans: of which kind they are, in which order they stand, and which of them go.
#include "tests/passes/plan_check.h"

namespace tilewright::passes {
namespace {

enum Passes : size_t { kAliases = 1, kCollected, kOrdered, kNeeded, kShared };

TEST(CollectSteps, AKernelForEachGroupAndViewsWithoutOne) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4, 6]
  const n: i64[1] = [24]
  a: f32[4, 6] = relu(x) group 0
  b: f32[4, 6] = neg(a) group 0
  v: f32[24] = reshape(b, n) group 1
  y: f32[24] = exp(v) group 2
  output y as "y"
)",
                         kCollected)
                .text(),
            R"(  kernel relu_neg (x) -> (b)
  view (b) -> (v)
  kernel exp (v) -> (y)
)");
}
// A concat whose parts all lie in it needs nothing; one with a part to copy waits for the others.
TEST(CollectSteps, ConcatsCopyWhatDoesNotLieInThem) {
  const std::string start = R"(  input x: f32[3, 16]
  a: f32[3, 16] = relu(x) group 0
  b: f32[3, 16] = neg(x) group 1
)";
  EXPECT_EQ(PlannedGraph(start + "  c: f32[3, 32] = concat(a, b) {axis = 1} group 2\n"
                                 "  output c as \"c\"\n",
                         kCollected)
                .text(),
            R"(  a lies in c at (0, 0) by (1 of d0, 1 of d1) a part of c
  b lies in c at (0, 16) by (1 of d0, 1 of d1) a part of c
  kernel relu (x) -> (a)
  kernel neg (x) -> (b)
  placed (a, b) -> (c)
)");
  EXPECT_EQ(PlannedGraph(start + "  c: f32[3, 32] = concat(a, b) {axis = 1} group 2\n"
                                 "  output c as \"c\"\n  output b as \"b\"\n",
                         kCollected)
                .text(),
            R"(  a lies in c at (0, 0) by (1 of d0, 1 of d1) a part of c
  kernel relu (x) -> (a)
  kernel neg (x) -> (b)
  kernel concat (b, a) -> (c)
)");
}
TEST(CollectSteps, ControlAndSymbols) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4]
  input i: i64[2]
  f: u64[1] = farthest_index(i) {extents = extents[4]} group 0
  k: i64[2] = checked_indices(i, f) {dim = 0, extents = extents[4], node = "g"} group 1
  g: f32[2] = gather(x, k) group 2
  y: i64[1, n] = nonzero(g) defines(n) group 3
  output y as "y"
)",
                         kCollected)
                .text(),
            R"(  kernel farthest_index (i) -> (f)
  control (i, f) -> (k)
  kernel gather (x, k) -> (g)
  symbols nonzero_symbols (g) -> ()
  kernel nonzero (g) -> (y)
)");
}

// b belongs to a group whose last node stands below the reader of its first.
TEST(OrderSteps, EachAfterThoseItNeeds) {
  const std::string lines = R"(  input x: f32[4]
  a: f32[4] = relu(x) group 0
  b: f32[4] = exp(a) group 1
  c: f32[4] = neg(x) group 0
  output b as "b"
  output c as "c"
)";
  const std::string before = PlannedGraph(lines, kCollected).text();
  EXPECT_LT(before.find("relu"), before.find("exp")) << before;
  EXPECT_EQ(PlannedGraph(lines, kOrdered).text(), R"(  kernel relu_neg (x) -> (a, c)
  kernel exp (a) -> (b)
)");
}
// Groups are numbered as they come; steps follow the graph where nothing else counts.
TEST(OrderSteps, ByTheGraphWhereNothingElseCounts) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4]
  a: f32[4] = relu(x) group 2
  b: f32[4] = exp(x) group 1
  c: f32[4] = neg(x) group 0
  output a as "a"
  output b as "b"
  output c as "c"
)",
                         kOrdered)
                .text(),
            R"(  kernel relu (x) -> (a)
  kernel exp (x) -> (b)
  kernel neg (x) -> (c)
)");
}
// Nothing that e reads is made by the step that counts the nonzeros; that one waits for a group
// whose last node is the graph's.
TEST(OrderSteps, AfterTheSymbolsInItsExtents) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4]
  input z: f32[1]
  a: f32[4] = relu(x) group 0
  y: i64[1, n] = nonzero(a) defines(n) group 1
  s: i64[1] known [n] = extents() {extents = extents[n]} group 2
  e: f32[n] = expand(z, s) group 3
  c: f32[4] = neg(x) group 0
  output e as "e"
  output c as "c"
)",
                         kOrdered)
                .text(),
            R"(  kernel relu_neg (x) -> (a, c)
  symbols nonzero_symbols (a) -> ()
  kernel nonzero (a) -> ()
  kernel extents () -> (s)
  kernel expand (z) -> (e)
)");
}
// What is kept of a pool for its gradient is found at once.
TEST(OrderSteps, EarlyOnesFollowWhatTheyRead) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[1, 1, 4, 4]
  a: f32[1, 1, 4, 4] = relu(x) group 0
  y: f32[1, 1, 2, 2] = max_pool(a) {kernel_shape = [2, 2], strides = [2, 2]} group 1
  b: f32[1, 1, 2, 2] = exp(y) group 2
  c: f32[1, 1, 2, 2] = neg(b) group 3
  t: i32[1, 1, 2, 2] = max_pool_taps(a, y) {kernel_shape = [2, 2], strides = [2, 2]} group 4
  output c as "c"
  output t as "t"
)",
                         kOrdered)
                .text(),
            R"(  kernel relu (x) -> (a)
  kernel max_pool (a) -> (y)
  kernel max_pool_taps (a, y) -> (t)
  kernel exp (y) -> (b)
  kernel neg (b) -> (c)
)");
}

TEST(DropUnusedSteps, WhatNobodyReads) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4]
  a: f32[4] = relu(x) group 0
  b: f32[4] = exp(a) group 1
  c: f32[4] = neg(x) group 2
  output c as "c"
)",
                         kNeeded)
                .text(),
            "  kernel neg (x) -> (c)\n");
}
// The number of nonzeros is named by a result's extent; their places are read by nobody.
TEST(DropUnusedSteps, KeepsWhatDefinesAnExtent) {
  EXPECT_EQ(PlannedGraph(R"(  input x: f32[4]
  input z: f32[1]
  y: i64[1, n] = nonzero(x) defines(n) group 0
  s: i64[1] known [n] = extents() {extents = extents[n]} group 1
  e: f32[n] = expand(z, s) group 2
  output e as "e"
)",
                         kNeeded)
                .text(),
            R"(  symbols nonzero_symbols (x) -> ()
  kernel expand (z) -> (e)
)");
}

}  // namespace
}  // namespace tilewright::passes
