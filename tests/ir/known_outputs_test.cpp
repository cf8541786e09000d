// Small results that are computed while a model is imported: as the compiled operator computes
// them.
#include <gtest/gtest.h>

#include "ir/graph/infer.h"
#include "ir/module_text/parser_graph.h"

namespace tilewright::ir {
namespace {

std::vector<int64_t> known_integers(const std::string& lines) {
  Result<Graph> g = parse_graph("graph g {\n" + lines + "}\n");
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  if (!g.ok()) return {};
  const auto known = known_outputs(*g, g->nodes[0]);
  EXPECT_TRUE(known.has_value());
  if (!known) return {};
  std::vector<int64_t> values;
  for (const Expr& e : (*known)[0]) values.push_back(as_int(e).value_or(-99999));
  return values;
}

TEST(KnownOutputs, FloatsSaturateAtTheEndsOfIntegers) {
  using Values = std::vector<int64_t>;
  auto quantized = [](const std::string& type) {
    return known_integers(
        "  const x: f32[6] = [-70000.0, -3.0, 2.5, 3.5, 300.0, 70000.0]\n"
        "  const s: f32[] = [1.0]\n  const z: " +
        type +
        "[] = [1]\n"
        "  y: " +
        type + "[6] = quantize(x, s, z) {to = \"" + type + "\"}\n  output y as \"y\"\n");
  };
  EXPECT_EQ(quantized("u8"), (Values{0, 0, 3, 5, 255, 255}));
  EXPECT_EQ(quantized("i8"), (Values{-128, -2, 3, 5, 127, 127}));
  EXPECT_EQ(quantized("u16"), (Values{0, 0, 3, 5, 301, 65535}));
  EXPECT_EQ(quantized("i16"), (Values{-32768, -2, 3, 5, 301, 32767}));
}
TEST(KnownOutputs, CastsSaturateToo) {
  auto cast = [](const std::string& type) {
    return known_integers("  const x: f64[3] = [-1e12, -1.5, 1e12]\n  y: " + type +
                          "[3] = cast(x) {to = \"" + type + "\"}\n  output y as \"y\"\n");
  };
  using Values = std::vector<int64_t>;
  EXPECT_EQ(cast("i32"), (Values{INT32_MIN, -1, INT32_MAX}));
  EXPECT_EQ(cast("u32"), (Values{0, 0, UINT32_MAX}));
  EXPECT_EQ(cast("i64"), (Values{-1000000000000, -1, 1000000000000}));
  EXPECT_EQ(cast("u64"), (Values{0, 0, 1000000000000}));
}

}  // namespace
}  // namespace tilewright::ir
