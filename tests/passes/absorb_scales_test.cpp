// Quantisations whose division goes into constants before it, and those that divide.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// The constants that stand before all graphs here. A power of two divides without rounding, so that
// results are equal to the bit.
const std::string kStart = R"(  input x: f32[2, 4]
  input q: i8[2, 4]
  const s: f32[] = [0.5]
  const z: i8[] = #0
  const k: f32[4] = [1.0, 0.25, 3.0, -2.0]
  const a: f32[] = [0.125]
)";
ir::Graph graph_of(const std::string& rest) {
  return parsed_graph(kStart + rest + "  output y as \"y\"\n", {bytes(DType::kInt8, {}, {3})});
}
void expect_left(const std::string& rest) {
  SCOPED_TRACE(rest);
  const ir::Graph before = graph_of(rest), after = absorb_scales(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(lines_of(after), lines_of(eliminate_dead_nodes(before)));
}
void expect_absorbed(const std::string& rest, const std::string& nodes) {
  SCOPED_TRACE(rest);
  const ir::Graph before = graph_of(rest), after = absorb_scales(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(nodes_of(after), nodes);
}

TEST(AbsorbScales, IntoTheFactorOfAProduct) {
  expect_absorbed("  m: f32[2, 4] = mul(x, k)\n  y: i8[2, 4] = quantize(m, s, z) {to = \"i8\"}\n",
                  R"(  y: f32[] known [2.0] = div(v, s)
  y_1: f32[4] known [2.0, 0.5, 6.0, -4.0] = mul(k, y)
  y_2: f32[2, 4] = mul(x, y_1)
  y_3: i8[2, 4] = quantize(y_2, _, z) {to = "i8"}
)");
}
TEST(AbsorbScales, IntoTheScaleOfADequantisation) {
  expect_absorbed(
      "  d: f32[2, 4] = dequantize(q, a, z)\n  y: i8[2, 4] = quantize(d, s, z) {to = \"i8\"}\n",
      R"(  y: f32[] known [2.0] = div(v, s)
  y_1: f32[] known [0.25] = mul(a, y)
  y_2: f32[2, 4] = dequantize(q, y_1, z)
  y_3: i8[2, 4] = quantize(y_2, _, z) {to = "i8"}
)");
}
TEST(AbsorbScales, ThroughSumsAndRelu) {
  expect_absorbed(R"(  m: f32[2, 4] = mul(x, k)
  d: f32[2, 4] = dequantize(q, a)
  t: f32[2, 4] = add(m, d)
  u: f32[2, 4] = add(t, k)
  r: f32[2, 4] = relu(u)
  y: i8[2, 4] = quantize(r, s, z) {to = "i8"}
)",
                  R"(  y: f32[] known [2.0] = div(v, s)
  y_1: f32[4] known [2.0, 0.5, 6.0, -4.0] = mul(k, y)
  y_2: f32[2, 4] = mul(x, y_1)
  y_3: f32[] known [0.25] = mul(a, y)
  y_4: f32[2, 4] = dequantize(q, y_3, _)
  y_5: f32[2, 4] = add(y_2, y_4)
  y_6: f32[4] known [2.0, 0.5, 6.0, -4.0] = mul(k, y)
  y_7: f32[2, 4] = add(y_5, y_6)
  y_8: f32[2, 4] = relu(y_7)
  y_9: i8[2, 4] = quantize(y_8, _, z) {to = "i8"}
)");
}
// A dequantisation is computed twice: its other reader keeps its scale.
TEST(AbsorbScales, OfADequantisationThatOthersRead) {
  expect_absorbed(R"(  d: f32[2, 4] = dequantize(q, a)
  y: i8[2, 4] = quantize(d, s, z) {to = "i8"}
  output d as "d"
)",
                  R"(  d: f32[2, 4] = dequantize(q, a)
  y: f32[] known [2.0] = div(v, s)
  y_1: f32[] known [0.25] = mul(a, y)
  y_2: f32[2, 4] = dequantize(q, y_1, _)
  y_3: i8[2, 4] = quantize(y_2, _, z) {to = "i8"}
)");
}

TEST(AbsorbScales, WhereFactorsAreNotConstants) {
  expect_left("  y: i8[2, 4] = quantize(x, s, z) {to = \"i8\"}\n");
  expect_left("  m: f32[2, 4] = mul(x, x)\n  y: i8[2, 4] = quantize(m, s, z) {to = \"i8\"}\n");
  expect_left(
      "  m: f32[2, 4] = mul(x, k)\n  t: f32[2, 4] = add(m, x)\n"
      "  y: i8[2, 4] = quantize(t, s, z) {to = \"i8\"}\n");
  // Not linear.
  expect_left(
      "  m: f32[2, 4] = mul(x, k)\n  e: f32[2, 4] = sigmoid(m)\n"
      "  y: i8[2, 4] = quantize(e, s, z) {to = \"i8\"}\n");
}
// Others read the product, the sum or what relu leaves: they would have to be computed twice.
TEST(AbsorbScales, WhereOthersReadTheSum) {
  for (const std::string shared : {"m", "t", "r"})
    expect_left(
        "  m: f32[2, 4] = mul(x, k)\n  t: f32[2, 4] = add(m, k)\n  r: f32[2, 4] = relu(t)\n"
        "  y: i8[2, 4] = quantize(r, s, z) {to = \"i8\"}\n  output " +
        shared + " as \"shared\"\n");
}
// Relu is the same before and after a positive factor alone; of zero there is no inverse.
TEST(AbsorbScales, ScalesThatDivide) {
  for (const std::string scale : {"const p: f32[] = [-0.5]", "const p: f32[] = [0.0]",
                                  "input p: f32[]", "const p: f32[4] = [0.5, 1.0, 2.0, 4.0]"}) {
    SCOPED_TRACE(scale);
    const ir::Graph before = graph_of("  " + scale +
                                      "\n  m: f32[2, 4] = mul(x, k)\n"
                                      "  y: i8[2, 4] = quantize(m, p, z) {to = \"i8\"}\n");
    EXPECT_EQ(nodes_of(absorb_scales(before)), nodes_of(before));
  }
}
// Past a depth the search ends, and nothing is half done.
TEST(AbsorbScales, ChainsTooDeep) {
  for (const int depth : {6, 7}) {
    std::string lines = "  r0: f32[2, 4] = mul(x, k)\n";
    for (int i = 1; i <= depth; ++i)
      lines += "  r" + std::to_string(i) + ": f32[2, 4] = relu(r" + std::to_string(i - 1) + ")\n";
    lines += "  y: i8[2, 4] = quantize(r" + std::to_string(depth) + ", s, z) {to = \"i8\"}\n";
    const ir::Graph before = graph_of(lines), after = absorb_scales(before);
    expect_same_graph_results(before, after);
    EXPECT_EQ(after.nodes.back().inputs[1] == ir::kNone, depth == 6) << ir::to_text(after);
  }
}

}  // namespace
}  // namespace tilewright::passes
