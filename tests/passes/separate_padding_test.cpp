// Padding of convolutions as nodes of its own: where, how much of it, and where convolutions keep
// theirs.
#include <gtest/gtest.h>

#include "passes/decisions/decisions.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

std::vector<ir::ConstantRef> weights() {
  std::vector<ir::ConstantRef> all;
  for (const Shape& shape : {Shape{2, 16, 3, 3}, Shape{2, 15, 3, 3}, Shape{1, 16, 3, 3}}) {
    std::vector<float> w;
    for (int64_t i = 0; i < *element_count(shape); ++i) w.push_back(static_cast<float>(i % 7) - 3);
    all.push_back(ir::make_constant_of<float>(DType::kFloat32, shape, w));
  }
  return all;
}
ir::Graph graph_of(const std::string& lines) { return parsed_graph(lines, weights()); }
void expect_left(const std::string& lines) {
  SCOPED_TRACE(lines);
  const ir::Graph before = graph_of(lines), after = separate_padding(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(ir::to_text(after), ir::to_text(before));
}
void expect_separate(const std::string& lines, const std::string& nodes) {
  SCOPED_TRACE(lines);
  const ir::Graph before = graph_of(lines), after = separate_padding(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(nodes_of(after), nodes);
}
constexpr const char* kStart = "  input x: f32[1, 16, 4, 4]\n  const w: f32[2, 16, 3, 3] = #0\n";

TEST(SeparatePadding, AmidWhichAKernelStores) {
  expect_separate(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 2, 3, 4] = conv(r, w) {pads = [0, 1, 1, 1]}
  output y as "y"
)",
                  R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 16, 5, 6] = pad(r, v, _) {mode = "constant"}
  y_1: f32[1, 2, 3, 4] = conv(y, w) {pads = [0, 0, 0, 0]}
)");
}

// The gradient of the weights reads the operand of the convolution as that does.
TEST(SeparatePadding, OnceForTheGradientOfWeights) {
  expect_separate(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  d: f32[2, 16, 3, 3] = conv_weights_gradient(y, r) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  output y as "y"
  output d as "d"
)",
                  R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 16, 6, 6] = pad(r, v, _) {mode = "constant"}
  y_1: f32[1, 2, 4, 4] = conv(y, w) {pads = [0, 0, 0, 0]}
  d: f32[2, 16, 3, 3] = conv_weights_gradient(y_1, y) {kernel_shape = [3, 3], pads = [0, 0, 0, 0]}
)");
}

// The widest on each side; who wants less reads a part.
TEST(SeparatePadding, OnceForAllReaders) {
  expect_separate(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  a: f32[1, 2, 6, 4] = conv(r, w) {pads = [2, 0, 2, 2]}
  b: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output a as "a"
  output b as "b"
)",
                  R"(  r: f32[1, 16, 4, 4] = relu(x)
  a: f32[1, 16, 8, 7] = pad(r, v, _) {mode = "constant"}
  a_1: f32[1, 16, 8, 6] = slice(a, v_1, v_2)
  a_2: f32[1, 2, 6, 4] = conv(a_1, w) {pads = [0, 0, 0, 0]}
  b: f32[1, 16, 6, 6] = slice(a, v_3, v_4)
  b_1: f32[1, 2, 4, 4] = conv(b, w) {pads = [0, 0, 0, 0]}
)");
}

// What stands around quantised operands is their zero point.
TEST(SeparatePadding, OfZeroPoints) {
  const std::string lines = R"(  input x: u8[1, 16, 4, 4]
  const w: i8[2, 16, 3, 3] = #0
  const z: u8[] = #1
  r: u8[1, 16, 4, 4] = max(x, z)
  y: i32[1, 2, 4, 4] = conv(r, w, z) {out_dtype = "i32", pads = [1, 1, 1, 1]}
  output y as "y"
)";
  const ir::Graph before = parsed_graph(
      lines, {random_bytes(DType::kInt8, {2, 16, 3, 3}, 1), bytes(DType::kUInt8, {}, {9})});
  const ir::Graph after = separate_padding(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(nodes_of(after), R"(  r: u8[1, 16, 4, 4] = max(x, z)
  y: u8[1, 16, 6, 6] = pad(r, v, z) {mode = "constant"}
  y_1: i32[1, 2, 4, 4] = conv(y, w, z) {out_dtype = "i32", pads = [0, 0, 0, 0]}
)");
}

TEST(SeparatePadding, WhereNoKernelHereStoresTheOperand) {
  expect_left(std::string(kStart) + R"(  y: f32[1, 2, 4, 4] = conv(x, w) {pads = [1, 1, 1, 1]}
  output y as "y"
)");
  expect_left(R"(  input x: f32[16, 4, 4]
  const w: f32[2, 16, 3, 3] = #0
  const n: i64[4] = [1, 16, 4, 4]
  e: f32[16, 4, 4] = exp(x)
  r: f32[1, 16, 4, 4] = reshape(e, n)
  y: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output y as "y"
)");
}
// A result of the graph, and the operand of a view.
TEST(SeparatePadding, WhereTheOperandMustLieRowByRow) {
  expect_left(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output y as "y"
  output r as "r"
)");
  for (const std::string view : {"f32[4, 4, 1, 16] = transpose(r) {perm = [2, 3, 0, 1]}",
                                 "f32[4, 4, 1, 16] = reshape(r, n)"})
    expect_left(std::string(kStart) + "  const n: i64[4] = [4, 4, 1, 16]\n" +
                "  r: f32[1, 16, 4, 4] = relu(x)\n"
                "  y: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}\n  v: " +
                view +
                "\n  z: f32[4, 4, 1, 16] = exp(v)\n  output y as \"y\"\n  output z as \"z\"\n");
}
TEST(SeparatePadding, WhereItDoesNotPay) {
  expect_left(R"(  input x: f32[1, 15, 4, 4]
  const w: f32[2, 15, 3, 3] = #1
  r: f32[1, 15, 4, 4] = relu(x)
  y: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output y as "y"
)");
  expect_left(R"(  input x: f32[1, 16, 4, 4]
  const w: f32[1, 16, 3, 3] = #2
  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 1, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output y as "y"
)");
  expect_left(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  y: f32[1, 2, 2, 2] = conv(r, w)
  output y as "y"
)");
}
// A value can lie amid one padding alone.
TEST(SeparatePadding, WhereReadersWantOtherValuesAround) {
  expect_left(std::string(kStart) + R"(  input p: f32[]
  r: f32[1, 16, 4, 4] = relu(x)
  a: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  b: f32[1, 2, 4, 4] = conv(r, w, _, _, p) {pads = [1, 1, 1, 1]}
  output a as "a"
  output b as "b"
)");
}
// As much as there is before: known at the run alone.
TEST(SeparatePadding, WhereItsWidthIsNotKnown) {
  const std::string lines = R"(  input x: f32[1, 16, n, 4]
  const w: f32[2, 16, 3, 3] = #0
  r: f32[1, 16, n, 4] = relu(x)
  y: f32[1, 2, 2 * n - 1, 4] = conv(r, w) {pads = extents[n, 1, 1, 1]}
  output y as "y"
)";
  EXPECT_EQ(ir::to_text(separate_padding(graph_of(lines))), ir::to_text(graph_of(lines)));
}
// The decision is asked once a value, and its answer holds.
TEST(SeparatePadding, FollowsAnAnswer) {
  const ir::Graph before = graph_of(std::string(kStart) + R"(  r: f32[1, 16, 4, 4] = relu(x)
  a: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  b: f32[1, 2, 4, 4] = conv(r, w) {pads = [1, 1, 1, 1]}
  output a as "a"
  output b as "b"
)");
  Decisions usual, no({{"r.amid_padding", 0}});
  EXPECT_NE(ir::to_text(separate_padding(before, &usual)), ir::to_text(before));
  EXPECT_EQ(usual.made().size(), 1u);
  EXPECT_EQ(ir::to_text(separate_padding(before, &no)), ir::to_text(before));
  EXPECT_TRUE(no.check_answers("here").ok());
}

}  // namespace
}  // namespace tilewright::passes
