// Weights stored in 8 bits: in which forms they are found, and products of floats with them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

ir::MachineDescription with_dot_products() {
  ir::MachineDescription m;
  m.features = {"avx2", "avx512vnni"};
  return m;
}
const ir::Node* find(const ir::Graph& g, std::string_view op) {
  for (const ir::Node& n : g.nodes)
    if (n.op->name == op) return &n;
  return nullptr;
}
// The product is one of i16 by `weights`, which takes `levels` per row, and its results are off by
// no more than half a level each: scale / 2 * sum |w|, beside the rounding of floats.
void expect_rounded(const std::string& lines, const std::vector<ir::ConstantRef>& constants,
                    DType weights, int64_t levels, double largest_sum) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants),
                  after = round_activations(before, with_dot_products());
  auto verified = ir::verify(after);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << ir::to_text(after);
  const ir::Node *product = find(after, "matmul"), *rows = find(after, "round_rows");
  ASSERT_TRUE(product && rows) << ir::to_text(after);
  EXPECT_EQ(after.value(product->inputs[0]).type.dtype, DType::kInt16);
  EXPECT_EQ(after.value(product->inputs[1]).type.dtype, weights);
  EXPECT_EQ(std::get<int64_t>(rows->attributes.at("levels")), levels);
  auto expected = run_graph(before), found = run_graph(after);
  ASSERT_TRUE(expected.ok() && found.ok()) << ir::to_text(after);
  const double bound = 0.5 / static_cast<double>(levels) * largest_sum + 1e-5;
  for (size_t p = 0; p < expected->size(); ++p)
    for (size_t i = 0; i < (*expected)[p].size(); ++i)
      EXPECT_NEAR((*found)[p][i], (*expected)[p][i], bound) << i;
}
void expect_left(const std::string& lines, const std::vector<ir::ConstantRef>& constants,
                 const ir::MachineDescription& machine) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants);
  EXPECT_EQ(ir::to_text(round_activations(before, machine)), ir::to_text(before));
}
std::string product(const std::string& x, const std::string& w, const std::string& scale,
                    const std::string& result, const std::string& attributes = "") {
  return "  input x: f32" + x + "\n  const q: " + w + " = #0\n  const s: " + scale + "\n  w: f32" +
         w.substr(w.find('[')) + " = dequantize(q, s)\n  y: f32" + result + " = matmul(x, w)" +
         (attributes.empty() ? "" : " {" + attributes + "}") + "\n  output y as \"y\"\n";
}
const char* const kScales = "f32[1, 4] = [0.5, 0.25, 2.0, 1.0]";

// Inputs lie in [-4, 4]; sums of 8 weights of at most 128, times a scale of at most 2.
constexpr double kLargestSum = 4 * 8 * 128 * 2;

TEST(RoundActivations, WeightsOfBytes) {
  const auto q = random_bytes(DType::kInt8, {8, 4}, 1), t = random_bytes(DType::kInt8, {4, 8}, 2);
  expect_rounded(product("[3, 8]", "i8[8, 4]", kScales, "[3, 4]"), {q}, DType::kInt8, 32767,
                 kLargestSum);
  expect_rounded(product("[2, 3, 8]", "i8[8, 4]", "f32[] = [0.5]", "[2, 3, 4]"), {q}, DType::kInt8,
                 32767, kLargestSum);
  expect_rounded(
      product("[3, 8]", "i8[4, 8]", "f32[4, 1] = [0.5, 0.25, 2.0, 1.0]", "[3, 4]", "trans_b = 1"),
      {t}, DType::kInt8, 32767, kLargestSum);
}

TEST(RoundActivations, ZeroPointsMakeWeightsOfShorts) {
  expect_rounded(R"(  input x: f32[3, 8]
  const q: u8[8, 4] = #0
  const s: f32[1, 4] = [0.5, 0.25, 2.0, 1.0]
  const z: u8[1, 4] = [0, 255, 128, 77]
  w: f32[8, 4] = dequantize(q, s, z)
  y: f32[3, 4] = matmul(x, w)
  output y as "y"
)",
                 {random_bytes(DType::kUInt8, {8, 4}, 1)}, DType::kInt16, 32767, 2 * kLargestSum);
}

TEST(RoundActivations, TakesAsManyLevelsAsSumsHold) {
  // 1024 weights of -128: 2^17 in a column, so that 2^31 / 2^17 - 1 levels are safe.
  expect_rounded(product("[1, 1024]", "i8[1024, 3]", "f32[] = [0.5]", "[1, 3]"),
                 {bytes(DType::kInt8, {1024, 3}, std::vector<uint8_t>(3 * 1024, 0x80))},
                 DType::kInt8, 16383, 4 * 1024 * 128 * 0.5);
}

TEST(RoundActivations, LeavesWhatDoesNotPayOrFit) {
  const auto q = random_bytes(DType::kInt8, {8, 4}, 1);
  ir::MachineDescription plain, avx2;
  avx2.features = {"avx2"};
  expect_left(product("[3, 8]", "i8[8, 4]", kScales, "[3, 4]"), {q}, plain);
  expect_left(product("[5, 8]", "i8[8, 4]", kScales, "[5, 4]"), {q}, avx2);
  expect_left(product("[8]", "i8[8, 4]", kScales, "[4]"), {q}, with_dot_products());
  expect_left(product("[3, 7]", "i8[7, 4]", kScales, "[3, 4]"),
              {random_bytes(DType::kInt8, {7, 4}, 1)}, with_dot_products());
  expect_left(product("[3, 4]", "i8[4, 2]", "f32[4, 1] = [0.5, 0.25, 2.0, 1.0]", "[3, 2]"),
              {random_bytes(DType::kInt8, {4, 2}, 1)}, with_dot_products());
  expect_left(product("[1, 8192]", "i8[8192, 1]", "f32[] = [0.5]", "[1, 1]"),
              {bytes(DType::kInt8, {8192, 1}, std::vector<uint8_t>(8192, 0x80))},
              with_dot_products());
}

TEST(RoundActivations, RoundsOnceForAllProducts) {
  const ir::Graph after = round_activations(parsed_graph(R"(  input x: f32[3, 8]
  const q: i8[8, 4] = #0
  const s: f32[] = [0.5]
  w: f32[8, 4] = dequantize(q, s)
  y: f32[3, 4] = matmul(x, w)
  z: f32[3, 4] = matmul(x, w)
  output y as "y"
  output z as "z"
)",
                                                         {random_bytes(DType::kInt8, {8, 4}, 1)}),
                                            with_dot_products());
  int roundings = 0;
  for (const ir::Node& n : after.nodes) roundings += n.op->name == "round_rows";
  EXPECT_EQ(roundings, 1) << ir::to_text(after);
}

TEST(FindQuantized, ACastAndAFactor) {
  const ir::Graph before = parsed_graph(R"(  input x: f32[3, 8]
  const q: i8[8, 4] = #0
  const s: f32[1, 4] = [0.5, 0.25, 2.0, 1.0]
  f: f32[8, 4] = cast(q) {to = "f32"}
  w: f32[8, 4] = mul(s, f)
  y: f32[3, 4] = matmul(x, w)
  output y as "y"
)",
                                        {random_bytes(DType::kInt8, {8, 4}, 1)});
  const ir::Graph after = find_quantized(before);
  expect_same_graph_results(before, after);
  EXPECT_TRUE(find(after, "dequantize") && !find(after, "cast")) << ir::to_text(after);
}

TEST(FindQuantized, GathersRowsAsTheyAreStored) {
  for (const std::string scale : {"f32[4, 1] = [0.5, 0.25, 2.0, 1.0]", "f32[] = [0.5]",
                                  "f32[1, 8] = [0.5, 0.25, 2.0, 1.0, 0.5, 0.25, 2.0, 1.0]"}) {
    const ir::Graph before = parsed_graph(
        "  const i: i64[2, 3] = [0, 3, 1, 1, 2, 0]\n"
        "  const q: i8[4, 8] = #0\n  const s: " +
            scale +
            "\n  w: f32[4, 8] = dequantize(q, s)\n"
            "  y: f32[2, 3, 8] = gather(w, i)\n  output y as \"y\"\n",
        {random_bytes(DType::kInt8, {4, 8}, 1)});
    const ir::Graph after = find_quantized(before);
    expect_same_graph_results(before, after);
    ASSERT_TRUE(find(after, "gather"));
    EXPECT_EQ(after.value(find(after, "gather")->outputs[0]).type.dtype, DType::kInt8)
        << ir::to_text(after);
  }
}

TEST(FindQuantized, ColumnsAreGatheredFromFloats) {
  const ir::Graph before = parsed_graph(R"(  const i: i64[3] = [0, 7, 1]
  const q: i8[4, 8] = #0
  const s: f32[4, 1] = [0.5, 0.25, 2.0, 1.0]
  w: f32[4, 8] = dequantize(q, s)
  y: f32[4, 3] = gather(w, i) {axis = 1}
  output y as "y"
)",
                                        {random_bytes(DType::kInt8, {4, 8}, 1)});
  const ir::Graph after = find_quantized(before);
  expect_same_graph_results(before, after);
  ASSERT_TRUE(find(after, "gather"));
  EXPECT_EQ(after.value(find(after, "gather")->outputs[0]).type.dtype, DType::kFloat32);
}

}  // namespace
}  // namespace tilewright::passes
