// What is stored narrow is widened by those who read it, and what is not repeated.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_repeated(const std::string& lines, const std::string& after) {
  SCOPED_TRACE(lines);
  const std::vector<ir::ConstantRef> constants{random_bytes(DType::kInt8, {3, 4}, 1)};
  const ir::Graph before = parsed_graph(lines, constants);
  expect_graph(before, repeat_widening(before), lines_of(parsed_graph(after, constants)));
}
void expect_left(const std::string& lines) { expect_repeated(lines, lines); }

// One for each group that reads it, however often; its own group has none left.
TEST(RepeatWidening, InEveryGroupThatReads) {
  expect_repeated(R"(  input q: i8[3, 4]
  const s: f32[] = [0.5]
  w: f32[3, 4] = dequantize(q, s) group 0
  a: f32[3, 4] = relu(w) group 1
  b: f32[3, 4] = mul(w, a) group 1
  c: f32[3, 4] = neg(w) group 2
  output b as "b"
  output c as "c"
)",
                  R"(  input q: i8[3, 4]
  const s: f32[] = [0.5]
  w: f32[3, 4] = dequantize(q, s) group 1
  a: f32[3, 4] = relu(w) group 1
  b: f32[3, 4] = mul(w, a) group 1
  w_1: f32[3, 4] = dequantize(q, s) group 2
  c: f32[3, 4] = neg(w_1) group 2
  output b as "b"
  output c as "c"
)");
}

// Where others need it stored, it is.
TEST(RepeatWidening, AResultStaysBesideItsCopies) {
  for (const std::string reader :
       {"f32[3, 1] = reduce_sum(w) {axes = [1]}", "f32[3, 4] = softmax(w)"})
    expect_repeated(
        "  input q: i16[3, 4]\n  w: f32[3, 4] = cast(q) {to = \"f32\"} group 0\n"
        "  a: f32[3, 4] = relu(w) group 1\n  b: " +
            reader + " group 2\n  output a as \"a\"\n  output b as \"b\"\n",
        "  input q: i16[3, 4]\n  w: f32[3, 4] = cast(q) {to = \"f32\"} group 0\n"
        "  w_1: f32[3, 4] = cast(q) {to = \"f32\"} group 1\n"
        "  a: f32[3, 4] = relu(w_1) group 1\n  b: " +
            reader + " group 2\n  output a as \"a\"\n  output b as \"b\"\n");
}
TEST(RepeatWidening, KeepsTheLayout) {
  expect_repeated(R"(  input x: i8[2, 3]
  q: i8[2, 3] layout(d1, d0) = identity(x) group 0
  w: f32[2, 3] layout(d1, d0) = cast(q) {to = "f32"} group 1
  y: f32[2, 3] layout(d1, d0) = neg(w) group 2
  z: f32[2, 3] = identity(y) group 3
  output z as "z"
)",
                  R"(  input x: i8[2, 3]
  q: i8[2, 3] layout(d1, d0) = identity(x) group 0
  w: f32[2, 3] layout(d1, d0) = cast(q) {to = "f32"} group 2
  y: f32[2, 3] layout(d1, d0) = neg(w) group 2
  z: f32[2, 3] = identity(y) group 3
  output z as "z"
)");
}

// y = relu of w, which is made by another group.
std::string read_elsewhere(const std::string& input, const std::string& w,
                           const std::string& y = "f32[3, 4] = relu(w)") {
  return "  " + input + "\n  w: " + w + " group 0\n  y: " + y + " group 1\n  output y as \"y\"\n";
}
TEST(RepeatWidening, WhatIsNoWidening) {
  expect_left(read_elsewhere("input q: i32[3, 4]", "f32[3, 4] = cast(q) {to = \"f32\"}"));
  expect_left(read_elsewhere("input q: f32[3, 4]", "f16[3, 4] = cast(q) {to = \"f16\"}",
                             "f16[3, 4] = relu(w)"));
  expect_left(read_elsewhere("input q: f32[3, 4]", "f32[3, 4] = exp(q)"));
  // Bytes that are known: their floats are, too.
  expect_left(read_elsewhere("const q: i8[3, 4] = #0", "f32[3, 4] = cast(q) {to = \"f32\"}"));
}
TEST(RepeatWidening, WhatIsReadMoreThanOnceAnElement) {
  const std::string x = "input x: f32[3, 4]\n  ";
  expect_left(read_elsewhere(x + "input q: i8[4]", "f32[4] = cast(q) {to = \"f32\"}",
                             "f32[3, 4] = add(x, w)"));
  expect_left(read_elsewhere(x + "input q: i8[1, 4]", "f32[1, 4] = cast(q) {to = \"f32\"}",
                             "f32[3, 4] = add(x, w)"));
  expect_left(read_elsewhere("input q: i8[3, 4]", "f32[3, 4] = cast(q) {to = \"f32\"}",
                             "f32[3, 4] = softmax(w)"));
  expect_left(read_elsewhere("input q: i8[1, 1]", "f32[1, 1] = cast(q) {to = \"f32\"}",
                             "f32[1, 1] = relu(w)"));
}
TEST(RepeatWidening, WhatTheGroupMakesItself) {
  expect_left(R"(  input q: i8[3, 4]
  w: f32[3, 4] = cast(q) {to = "f32"} group 0
  y: f32[3, 4] = relu(w) group 0
  output y as "y"
)");
}

}  // namespace
}  // namespace tilewright::passes
