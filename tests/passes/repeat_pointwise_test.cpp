// What is computed where it is read, instead of being stored.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_repeated(const std::string& lines, const std::string& after) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines);
  expect_graph(before, repeat_pointwise(before), lines_of(parsed_graph(after)));
}
void expect_left(const std::string& lines) { expect_repeated(lines, lines); }

// A variance, and another reader of what it is made of.
std::string normalised(const std::string& extents, const std::string& centred,
                       const std::string& copy = "", const std::string& last = "div") {
  const std::string all = "f32[" + extents + ", 256]", row = "f32[" + extents + ", 1]",
                    by = copy.empty() ? "c" : "c_1";
  return "  input x: " + all + "\n  m: " + row + " = reduce_mean(x) {axes = [1]}\n  c: " + all +
         " = " + centred + "\n  s: " + all + " = mul(c, c)\n  v: " + row +
         " = reduce_mean(s) {axes = [1]}\n" +
         (copy.empty() ? "" : "  c_1: " + all + " = " + copy + "\n") + "  y: " + all + " = " +
         last + "(" + by + ", v)\n  output y as \"y\"\n";
}

TEST(RepeatPointwise, WhatIsMadeOfOneValueInMemory) {
  expect_repeated(normalised("256", "sub(x, m)"), normalised("256", "sub(x, m)", "sub(x, m)"));
}
TEST(RepeatPointwise, WhatACacheHoldsStays) { expect_left(normalised("16", "sub(x, m)")); }
TEST(RepeatPointwise, WhatIsCostlyStays) {
  expect_left(normalised("256", "pow(x, m)"));
  expect_left(normalised("256", "div(x, m)"));
}
// `h` is stored for the product that waits for another kernel: what divides it by a number need not be.
TEST(RepeatPointwise, WhatIsMadeOfAValueThatIsReadAgainLater) {
  const auto lines = [](const std::string& divided, const std::string& again,
                        const std::string& later) {
    const std::string all = "f32[256, 256]";
    return "  input x: " + all + "\n  const n: " + divided + "\n  h: " + all +
           " = matmul(x, x)\n  z: " + all + " = div(h, n)\n  e: " + all + " = erf(z)\n  p: " + all +
           " = matmul(e, x)\n  q: " + all + " = " + later + "\n" + again + "  s: " + all +
           " = mul(" + (again.empty() ? "z, z" : "z_1, z_1") +
           ")\n  output q as \"q\"\n  output s as \"s\"\n";
  };
  const std::string one = "f32[] = [2.0]", row = "f32[1, 2] = [2.0, 3.0]";
  expect_repeated(lines(one, "", "mul(p, h)"),
                  lines(one, "  z_1: f32[256, 256] = div(h, n)\n", "mul(p, h)"));
  expect_left(lines(one, "", "mul(p, x)"));
}
TEST(RepeatPointwise, WhatIsMadeOfTwoValuesStays) {
  expect_left(R"(  input x: f32[256, 256]
  input z: f32[256, 256]
  c: f32[256, 256] = mul(x, z)
  a: f32[256, 256] = neg(c)
  b: f32[256, 256] = relu(c)
  output a as "a"
  output b as "b"
)");
}
// Products read it from memory, and so may others.
TEST(RepeatPointwise, WhatAProductReadsStays) {
  expect_left(R"(  input x: f32[256, 256]
  c: f32[256, 256] = neg(x)
  p: f32[256, 256] = matmul(c, c)
  a: f32[256, 256] = relu(c)
  output p as "p"
  output a as "a"
)");
}
// Else it would be `r` that is written in its place.
TEST(RepeatPointwise, WhatIsMadeOfWhatIsNotInMemoryStays) {
  expect_left(R"(  input x: f32[256, 256]
  r: f32[256, 256] = exp(x)
  c: f32[256, 256] = neg(r)
  a: f32[256, 256] = relu(c)
  b: f32[256, 256] = abs(c)
  output a as "a"
  output b as "b"
)");
}

// `d` is made of what is computed again itself.
TEST(RepeatPointwise, WhatIsMadeOfWhatIsRepeatedStays) {
  expect_repeated(R"(  input x: f32[256, 256]
  c: f32[256, 256] = neg(x)
  d: f32[256, 256] = abs(c)
  a: f32[256, 256] = mul(c, d)
  b: f32[256, 256] = relu(d)
  output a as "a"
  output b as "b"
)",
                  R"(  input x: f32[256, 256]
  c: f32[256, 256] = neg(x)
  d: f32[256, 256] = abs(c)
  c_1: f32[256, 256] = neg(x)
  a: f32[256, 256] = mul(c_1, d)
  b: f32[256, 256] = relu(d)
  output a as "a"
  output b as "b"
)");
}

}  // namespace
}  // namespace tilewright::passes
