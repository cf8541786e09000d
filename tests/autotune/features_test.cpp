// What features say of loops: counts that can be checked by hand, and what must have no say.
#include "autotune/learn/features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autotune/learn/loop_shape.h"
#include "autotune/search/priced_form.h"
#include "ir/text/parser_loops.h"

namespace tilewright::autotune {
namespace {

ir::Kernel parsed(const std::string& text) {
  auto kernel = ir::parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  return *kernel;
}
// A product, with its block and operands named as one likes.
ir::Kernel product(const std::string& block, const std::string& x) {
  return parsed(
      "kernel k(" + x + ": f32[61, 96], w: f32[96, 80], y: f32[61, 80]) {\n" +
      "  for i in 0..61 {\n    for j in 0..80 {\n      for r in 0..96 {\n        block \"" + block +
      "\" (vi: parallel 61 = i, vj: parallel 80 = j, vr: reduce 96 = r) init {\n" +
      "          y[vi, vj] = 0.0\n        } body {\n          y[vi, vj] = y[vi, vj] + " + x +
      "[vi, vr] * w[vr, vj]\n        }\n      }\n    }\n  }\n}\n");
}
Result<PricedForm> form(const ir::Kernel& kernel, const passes::Answers& answers = {}) {
  const passes::LowerOptions options;
  TW_ASSIGN(passes::Trace schedule, schedule_of(kernel, {"w"}, options, answers));
  return price(kernel, std::move(schedule), options);
}
double value(const Features& f, const std::string& name) {
  const auto& names = feature_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return f[static_cast<size_t>(at - names.begin())];
}

TEST(Features, AreNamedOnceAndFinite) {
  const auto f = form(product("matmul", "x"));
  ASSERT_TRUE(f.ok()) << f.error().to_string();
  EXPECT_EQ(f->features.size(), feature_names().size());
  EXPECT_EQ(std::set<std::string>(feature_names().begin(), feature_names().end()).size(),
            feature_names().size());
  for (const float x : f->features) EXPECT_TRUE(std::isfinite(x));
  EXPECT_LT(analytic_features(), feature_names().size());
}
TEST(Features, NamesHaveNoSay) {
  const auto a = form(product("matmul", "x")), b = form(product("fc", "activations"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->features, b->features);
}
TEST(Features, TellFormsApart) {
  const auto wide = form(product("matmul", "x")),
             narrow = form(product("matmul", "x"), {{"matmul.rows", 1}});
  ASSERT_TRUE(wide.ok() && narrow.ok()) << narrow.error().to_string();
  EXPECT_GT(value(wide->features, "hot.sums"), value(narrow->features, "hot.sums"));
  EXPECT_LT(value(wide->features, "all.loads"), value(narrow->features, "all.loads"));
}
// 8 x 16 runs of: two vectors are read, one product is added to a sum that stays, one is stored.
TEST(LoopShape, CountsInstructions) {
  const ir::Kernel k = parsed(
      "kernel k(x: f32[1024], y: f32[2048]) {\n  for i in 0..8 parallel {\n    for j in 0..16 {\n"
      "      y[ramp(i * 128 + j * 8, 1, 8)] = x[ramp(i * 128 + j * 8, 1, 8)] * "
      "x[ramp(j * 8, 1, 8)]\n    }\n  }\n}\n");
  const LoopShape s = shape_of(ir::MachineDescription(), k.body);
  EXPECT_EQ(s.mix.products, 128);
  EXPECT_EQ(s.mix.arithmetic, 128);
  EXPECT_EQ(s.mix.loads, 256);
  EXPECT_EQ(s.mix.stores, 128);
  EXPECT_EQ(s.hottest.iterations, 16);
  EXPECT_EQ(s.hottest.runs, 128);
  EXPECT_EQ(s.tasks, 8);
  EXPECT_EQ(s.shared, 1);
  EXPECT_EQ(s.depth, 2);
  EXPECT_EQ(s.innermost_loops, 1);
}

}  // namespace
}  // namespace tilewright::autotune
