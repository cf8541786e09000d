// Products of dequantised operands: which become sums of bytes, and that they compute the same.
// Scales are powers of two, so that nothing is rounded before the last step.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// The two passes as they run, one after the other.
ir::Graph quantized(const ir::Graph& graph) { return absorb_scales(quantize_contractions(graph)); }

int count(const ir::Graph& g, std::string_view op) {
  int n = 0;
  for (const ir::Node& node : g.nodes) n += node.op->name == op;
  return n;
}
// The product is one of bytes, and what follows has `dequantized` dequantised operands left.
void expect_quantized(const std::string& lines, const std::vector<ir::ConstantRef>& constants,
                      int dequantized = 0) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants), after = quantized(before);
  expect_same_graph_results(before, after);
  for (const ir::Node& n : after.nodes) {
    if (n.op->name != "matmul" && n.op->name != "conv") continue;
    EXPECT_EQ(byte_size(after.value(n.inputs[0]).type.dtype), 1) << ir::to_text(after);
    EXPECT_EQ(byte_size(after.value(n.inputs[1]).type.dtype), 1) << ir::to_text(after);
    EXPECT_EQ(after.value(n.outputs[0]).type.dtype, DType::kInt32) << ir::to_text(after);
  }
  EXPECT_EQ(count(after, "dequantize"), dequantized) << ir::to_text(after);
  expect_same_graph_results(before, expand_zero_points(after));
}
void expect_unchanged(const std::string& lines, const std::vector<ir::ConstantRef>& constants) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants);
  EXPECT_EQ(ir::to_text(quantized(before)), ir::to_text(before));
}

std::string matmul_lines(const std::string& x, const std::string& w, const std::string& result,
                         const std::string& scale_x, const std::string& scale_w,
                         const std::string& attributes = "") {
  return "  input qx: " + x + "\n  const qw: " + w + " = #0\n  const sx: " + scale_x +
         "\n  const sw: " + scale_w + "\n  x: f32" + x.substr(x.find('[')) +
         " = dequantize(qx, sx)\n  w: f32" + w.substr(w.find('[')) +
         " = dequantize(qw, sw)\n  y: f32" + result + " = matmul(x, w)" +
         (attributes.empty() ? "" : " {" + attributes + "}") + "\n  output y as \"y\"\n";
}

TEST(QuantizeContractions, OneScaleATensor) {
  for (const std::string x : {"u8", "i8"})
    for (const std::string w : {"u8", "i8"}) {
      const DType of_w = *dtype_from_name(w);
      expect_quantized(
          matmul_lines(x + "[3, 8]", w + "[8, 5]", "[3, 5]", "f32[] = [0.25]", "f32[1] = [0.125]"),
          {random_bytes(of_w, {8, 5}, 1)});
      expect_quantized(matmul_lines(x + "[2, 3, 8]", w + "[5, 8]", "[2, 3, 5]", "f32[] = [0.25]",
                                    "f32[] = [0.125]", "trans_b = 1"),
                       {random_bytes(of_w, {5, 8}, 1)});
    }
}

// Two operands that are known at run time alone, in rows enough to pack one of them, when the
// result is nothing but quantised again.
TEST(QuantizeContractions, TwoInputs) {
  auto lines = [](const std::string& w, const std::string& attributes, const std::string& after) {
    return "  input qx: u8[2, 7, 18]\n  input qw: " + w +
           "\n  const sx: f32[] = [0.25]\n  const sw: f32[] = [0.125]\n  const z: u8[] = [131]\n"
           "  x: f32[2, 7, 18] = dequantize(qx, sx, z)\n  w: f32" +
           w.substr(w.find('[')) + " = dequantize(qw, sw)\n  y: f32[2, 7, 5] = matmul(x, w)" +
           attributes + "\n" + after;
  };
  const std::string quantized =
      "  const sy: f32[] = [64.0]\n  v: i8[2, 7, 5] = quantize(y, sy) {to = \"i8\"}\n"
      "  output v as \"v\"\n";
  for (const std::string w : {"u8", "i8"}) {
    expect_quantized(lines(w + "[2, 18, 5]", "", quantized), {});
    expect_quantized(lines(w + "[2, 5, 18]", " {trans_b = 1}", quantized), {});
    expect_unchanged(lines(w + "[2, 18, 5]", "", "  output y as \"y\"\n"), {});
    expect_unchanged(lines(w + "[2, 18, 5]", "", quantized + "  output y as \"y\"\n"), {});
  }
}

TEST(QuantizeContractions, OneScaleAColumn) {
  expect_quantized(matmul_lines("u8[3, 8]", "i8[8, 4]", "[3, 4]", "f32[] = [0.25]",
                                "f32[1, 4] = [0.5, 0.25, 2.0, 1.0]"),
                   {random_bytes(DType::kInt8, {8, 4}, 1)});
  expect_quantized(matmul_lines("u8[3, 8]", "i8[4, 8]", "[3, 4]", "f32[] = [0.25]",
                                "f32[4, 1] = [0.5, 0.25, 2.0, 1.0]", "trans_b = 1"),
                   {random_bytes(DType::kInt8, {4, 8}, 1)});
}

TEST(QuantizeContractions, ZeroPointsAndAScaleOfTheRun) {
  expect_quantized(R"(  input qx: u8[3, 8]
  input sx: f32[]
  input zx: u8[]
  const qw: u8[8, 4] = #0
  const sw: f32[1, 4] = [0.5, 0.25, 2.0, 1.0]
  const zw: u8[1, 4] = [0, 255, 128, 77]
  x: f32[3, 8] = dequantize(qx, sx, zx)
  w: f32[8, 4] = dequantize(qw, sw, zw)
  y: f32[3, 4] = matmul(x, w)
  output y as "y"
)",
                   {random_bytes(DType::kUInt8, {8, 4}, 1)});
}

// u8 activations whose zero is not 0, with padding, between two layers of a network.
const char* const kLayer = R"(  input qx: u8[1, 4, 6, 5]
  const sx: f32[] = [0.125]
  const zx: u8[] = [117]
  const qw: i8[4, 4, 3, 3] = #0
  const sw: f32[4, 1, 1, 1] = [0.5, 0.25, 0.125, 0.0625]
  const sy: f32[] = [4.0]
  const zy: u8[] = [3]
  x: f32[1, 4, 6, 5] = dequantize(qx, sx, zx)
  w: f32[4, 4, 3, 3] = dequantize(qw, sw)
  c: f32[1, 4, 6, 5] = conv(x, w) {pads = [1, 1, 1, 1]}
)";

TEST(QuantizeContractions, ConvWithPaddingAndRelu) {
  const std::vector<ir::ConstantRef> constants{random_bytes(DType::kInt8, {4, 4, 3, 3}, 1)};
  expect_quantized(std::string(kLayer) + R"(  r: f32[1, 4, 6, 5] = relu(c)
  y: u8[1, 4, 6, 5] = quantize(r, sy, zy) {to = "u8"}
  output y as "y"
)",
                   constants);
}

TEST(QuantizeContractions, ConvWithBiasAndResidual) {
  const std::vector<ir::ConstantRef> constants{random_bytes(DType::kInt8, {4, 4, 3, 3}, 1)};
  const std::string lines = std::string(kLayer) + R"(  input qr: u8[1, 4, 6, 5]
  const b: f32[4, 1, 1] = [1.5, -2.25, 100.0, 0.125]
  d: f32[1, 4, 6, 5] = dequantize(qr, sx, zx)
  s: f32[1, 4, 6, 5] = add(c, b)
  t: f32[1, 4, 6, 5] = add(s, d)
  r: f32[1, 4, 6, 5] = relu(t)
  y: u8[1, 4, 6, 5] = quantize(r, sy, zy) {to = "u8"}
  output y as "y"
)";
  expect_quantized(lines, constants, 1);
  // The scale of the result is in the factors: nothing is left to divide by.
  const ir::Graph after = quantized(parsed_graph(lines, constants));
  for (const ir::Node& n : after.nodes)
    if (n.op->name == "quantize") { EXPECT_EQ(n.inputs[1], ir::kNone) << ir::to_text(after); }
}

TEST(QuantizeContractions, QuantizeKeepsItsScaleWhereFactorsAreNone) {
  const std::vector<ir::ConstantRef> constants{random_bytes(DType::kInt8, {4, 4, 3, 3}, 1)};
  const char* const ends[] = {// a function between
                              R"(  r: f32[1, 4, 6, 5] = tanh(c)
  y: u8[1, 4, 6, 5] = quantize(r, sy, zy) {to = "u8"}
  output y as "y"
)",
                              // the sum is wanted, too
                              R"(  r: f32[1, 4, 6, 5] = relu(c)
  y: u8[1, 4, 6, 5] = quantize(r, sy, zy) {to = "u8"}
  output y as "y"
  output r as "r"
)",
                              // a scale that is not one, or known at run time alone
                              R"(  const s: f32[4, 1, 1] = [1.0, 2.0, 4.0, 8.0]
  y: u8[1, 4, 6, 5] = quantize(c, s, zy) {to = "u8"}
  output y as "y"
)",
                              R"(  input s: f32[]
  t: f32[] = exp(s)
  y: u8[1, 4, 6, 5] = quantize(c, t, zy) {to = "u8"}
  output y as "y"
)"};
  for (const char* end : ends) {
    const std::string lines = std::string(kLayer) + end;
    expect_quantized(lines, constants);
    const ir::Graph after = quantized(parsed_graph(lines, constants));
    for (const ir::Node& n : after.nodes)
      if (n.op->name == "quantize") { EXPECT_NE(n.inputs[1], ir::kNone) << ir::to_text(after); }
  }
}

TEST(QuantizeContractions, WhatStaysInFloats) {
  const std::string one = "f32[] = [0.25]";
  // Terms that are no multiple of four.
  expect_unchanged(matmul_lines("u8[3, 6]", "i8[6, 5]", "[3, 5]", one, one),
                   {random_bytes(DType::kInt8, {6, 5}, 1)});
  // A scale that changes along the sum, or with the rows.
  expect_unchanged(
      matmul_lines("u8[3, 4]", "i8[4, 5]", "[3, 5]", one, "f32[4, 1] = [1.0, 2.0, 4.0, 8.0]"),
      {random_bytes(DType::kInt8, {4, 5}, 1)});
  expect_unchanged(
      matmul_lines("u8[3, 4]", "i8[4, 5]", "[3, 5]", "f32[3, 1] = [1.0, 2.0, 4.0]", one),
      {random_bytes(DType::kInt8, {4, 5}, 1)});
  expect_unchanged(matmul_lines("u8[4, 3]", "i8[4, 5]", "[3, 5]", one, one, "trans_a = 1"),
                   {random_bytes(DType::kInt8, {4, 5}, 1)});
  expect_unchanged(matmul_lines("u8[4]", "i8[4, 5]", "[5]", one, one),
                   {random_bytes(DType::kInt8, {4, 5}, 1)});
  // Weights, or their scale, of the run.
  for (const std::string weight : {"const qw: i8[4, 5] = #0", "input qw: i8[4, 5]"})
    for (const std::string scale : {"const s: f32[] = [0.5]", "input s: f32[]"}) {
      if (weight[0] == 'c' && scale[0] == 'c') continue;
      expect_unchanged("  input qx: u8[3, 4]\n  " + weight + "\n  " + scale + R"(
  const sx: f32[] = [0.25]
  x: f32[3, 4] = dequantize(qx, sx)
  w: f32[4, 5] = dequantize(qw, s)
  y: f32[3, 5] = matmul(x, w)
  output y as "y"
)",
                       {random_bytes(DType::kInt8, {4, 5}, 1)});
    }
}

// A fourth channel completes the terms of a dot product; its weights stand for 0.
TEST(QuantizeContractions, ConvOfThreeChannels) {
  for (const std::string zero :
       {"", "  const zw: u8[] = [131]\n", "  const zw: u8[4, 1, 1, 1] = [0, 255, 128, 77]\n"})
    expect_quantized(
        "  input qx: u8[1, 3, 6, 5]\n  const sx: f32[] = [0.125]\n"
        "  const zx: u8[] = [117]\n  const qw: u8[4, 3, 3, 3] = #0\n"
        "  const sw: f32[4, 1, 1, 1] = [0.5, 0.25, 0.125, 0.0625]\n" +
            zero +
            "  x: f32[1, 3, 6, 5] = dequantize(qx, sx, zx)\n"
            "  w: f32[4, 3, 3, 3] = dequantize(qw, sw" +
            (zero.empty() ? "" : ", zw") +
            ")\n  y: f32[1, 4, 6, 5] = conv(x, w) {pads = [1, 1, 1, 1]}\n"
            "  output y as \"y\"\n",
        {random_bytes(DType::kUInt8, {4, 3, 3, 3}, 1)});
}

// A window for each channel: with signed weights around 0 alone.
TEST(QuantizeContractions, DepthwiseConv) {
  auto lines = [](const std::string& of_w, const std::string& zero) {
    return "  input qx: i8[1, 3, 6, 5]\n  const sx: f32[] = [0.125]\n  const zx: i8[] = [17]\n"
           "  const qw: " +
           of_w + "[3, 1, 3, 3] = #0\n  const sw: f32[3, 1, 1, 1] = [0.5, 0.25, 0.125]\n" +
           (zero.empty() ? "" : "  const zw: " + of_w + "[] = [" + zero + "]\n") +
           "  x: f32[1, 3, 6, 5] = dequantize(qx, sx, zx)\n"
           "  w: f32[3, 1, 3, 3] = dequantize(qw, sw" +
           (zero.empty() ? "" : ", zw") +
           ")\n  y: f32[1, 3, 6, 5] = conv(x, w) {group = 3, pads = [1, 1, 1, 1]}\n"
           "  output y as \"y\"\n";
  };
  const auto weights = [](DType t) { return random_bytes(t, {3, 1, 3, 3}, 1); };
  for (const char* zero : {"", "0"}) expect_quantized(lines("i8", zero), {weights(DType::kInt8)});
  expect_unchanged(lines("i8", "2"), {weights(DType::kInt8)});
  expect_unchanged(lines("u8", "128"), {weights(DType::kUInt8)});
}

TEST(QuantizeContractions, ConvThatStaysInFloats) {
  const char* const convs[] = {R"(  input qx: u8[1, 8, 4, 4]
  const qw: i8[2, 4, 1, 1] = #0
  const s: f32[] = [0.5]
  x: f32[1, 8, 4, 4] = dequantize(qx, s)
  w: f32[2, 4, 1, 1] = dequantize(qw, s)
  y: f32[1, 2, 4, 4] = conv(x, w) {group = 2}
  output y as "y"
)",
                               R"(  input qx: u8[1, 5, 4, 4]
  const qw: i8[2, 5, 1, 1] = #1
  const s: f32[] = [0.5]
  x: f32[1, 5, 4, 4] = dequantize(qx, s)
  w: f32[2, 5, 1, 1] = dequantize(qw, s)
  y: f32[1, 2, 4, 4] = conv(x, w)
  output y as "y"
)"};
  for (const char* lines : convs)
    expect_unchanged(lines, {random_bytes(DType::kInt8, {2, 4, 1, 1}, 1),
                             random_bytes(DType::kInt8, {2, 5, 1, 1}, 2)});
}

}  // namespace
}  // namespace tilewright::passes
