// Weights stored in 8 bits: the forms that are dequantisations, and those that only look like one.
// What is gathered of them: round_activations_test.cpp.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

std::vector<ir::ConstantRef> stored(DType dtype) { return {random_bytes(dtype, {3, 4}, 1)}; }

void expect_left(const std::string& lines, const std::vector<ir::ConstantRef>& constants = {}) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants), after = find_quantized(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(ir::to_text(after), ir::to_text(before));
}

// Either operand of the product may be the cast, signed or not, the scale known or not.
TEST(FindQuantized, CastsAndFactorsInEitherOrder) {
  for (const std::string t : {"i8", "u8"})
    for (const std::string operands : {"f, s", "s, f"})
      for (const std::string scale : {"const s: f32[3, 1] = [0.5, 0.25, 2.0]", "input s: f32[4]"}) {
        const auto constants = stored(*dtype_from_name(t));
        const std::string start = "  " + scale + "\n  const q: " + t + "[3, 4] = #0\n";
        const ir::Graph before =
            parsed_graph(start + "  f: f32[3, 4] = cast(q) {to = \"f32\"}\n  w: f32[3, 4] = mul(" +
                             operands + ")\n  output w as \"w\"\n",
                         constants);
        const ir::Graph expected = parsed_graph(
            start + "  w: f32[3, 4] = dequantize(q, s)\n  output w as \"w\"\n", constants);
        expect_graph(before, find_quantized(before), lines_of(expected));
      }
}

TEST(FindQuantized, ProductsThatAreNoDequantisation) {
  // Bytes that only the run knows, and integers of four bytes.
  expect_left(R"(  input q: i8[3, 4]
  const s: f32[] = [0.5]
  f: f32[3, 4] = cast(q) {to = "f32"}
  w: f32[3, 4] = mul(f, s)
  output w as "w"
)");
  expect_left(R"(  const q: i32[4] = [1, 2, 3, 4]
  const s: f32[] = [0.5]
  f: f32[4] = cast(q) {to = "f32"}
  w: f32[4] = mul(f, s)
  output w as "w"
)");
  // Truth values are no integers.
  expect_left(R"(  const q: bool[4] = #0
  const s: f32[] = [0.5]
  f: f32[4] = cast(q) {to = "f32"}
  w: f32[4] = mul(f, s)
  output w as "w"
)",
              {bytes(DType::kBool, {4}, {1, 0, 0, 1})});
  // A scale that has more elements than the bytes.
  expect_left(R"(  const q: i8[4] = #0
  input s: f32[3, 1]
  f: f32[4] = cast(q) {to = "f32"}
  w: f32[3, 4] = mul(f, s)
  output w as "w"
)",
              {random_bytes(DType::kInt8, {4}, 1)});
  // Other floats.
  expect_left(R"(  const q: i8[3, 4] = #0
  const s: f64[] = [0.5]
  f: f64[3, 4] = cast(q) {to = "f64"}
  w: f64[3, 4] = mul(f, s)
  output w as "w"
)",
              stored(DType::kInt8));
  // A sum.
  expect_left(R"(  const q: i8[3, 4] = #0
  const s: f32[] = [0.5]
  f: f32[3, 4] = cast(q) {to = "f32"}
  w: f32[3, 4] = add(f, s)
  output w as "w"
)",
              stored(DType::kInt8));
}

// Zero points are gathered like scales: with their rows, or the one of all rows.
TEST(FindQuantized, GathersZeroPoints) {
  for (const std::string zero : {"[3, 1] = #1", "[1, 4] = #2", "[] = #3"}) {
    SCOPED_TRACE(zero);
    const ir::Graph before = parsed_graph(
        "  const i: i64[5] = [2, 0, -3, -1, 1]\n  const q: u8[3, 4] = #0\n"
        "  const s: f32[3, 1] = [0.5, 0.25, 2.0]\n  const z: u8" +
            zero +
            "\n  w: f32[3, 4] = dequantize(q, s, z)\n  y: f32[5, 4] = gather(w, i) {axis = -2}\n"
            "  output y as \"y\"\n",
        {random_bytes(DType::kUInt8, {3, 4}, 1), random_bytes(DType::kUInt8, {3, 1}, 2),
         random_bytes(DType::kUInt8, {1, 4}, 3), random_bytes(DType::kUInt8, {}, 4)});
    const ir::Graph after = find_quantized(before);
    expect_same_graph_results(before, after);
    EXPECT_EQ(after.nodes.back().op->name, "dequantize") << ir::to_text(after);
    EXPECT_EQ(after.value(after.nodes.back().inputs[0]).type.dtype, DType::kUInt8);
  }
}

TEST(FindQuantized, RowsThatAreGatheredAsFloats) {
  // The bytes are not known; their rows are no less to read.
  expect_left(R"(  const i: i64[2] = [2, 0]
  input q: i8[3, 4]
  const s: f32[] = [0.5]
  w: f32[3, 4] = dequantize(q, s)
  y: f32[2, 4] = gather(w, i)
  output y as "y"
)");
  // A scale per element of rows, without the dimension of the rows.
  expect_left(R"(  const i: i64[2] = [2, 0]
  const q: i8[3, 4] = #0
  const s: f32[4] = [0.5, 0.25, 2.0, 1.0]
  w: f32[3, 4] = dequantize(q, s)
  y: f32[2, 4] = gather(w, i)
  output y as "y"
)",
              stored(DType::kInt8));
}

}  // namespace
}  // namespace tilewright::passes
