// Two forms of a model in turn: times of runs and kernels, and results that must agree.
#include "autotune/measure/paired_runs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"

namespace tilewright::autotune {
namespace {

// y = x * w + 1e-7 * extra, with 64 terms a sum; i64 where `integers`.
std::unique_ptr<Session> session(float extra, bool integers = false) {
  std::vector<float> weights(64 * 32, 0.25f);
  weights[5] += extra;
  auto graph = ir::parse_graph(
      std::string("graph g {\n  input x: f32[16, 64]\n  const w: f32[64, 32] = #0\n") +
          "  t: f32[16, 32] = matmul(x, w)\n" +
          (integers ? "  y: i64[16, 32] = cast(t) {to = \"i64\"}\n"
                    : "  y: f32[16, 32] = relu(t)\n") +
          "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {64, 32}, weights)});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  auto executable = compile_in_memory(*graph, {});
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  auto s = Session::create(*executable, {.threads = 1});
  EXPECT_TRUE(s.ok());
  return std::move(*s);
}
Tensor input() {
  Tensor t = Tensor::allocate(DType::kFloat32, {16, 64}).value();
  for (int64_t i = 0; i < t.element_count(); ++i) t.data_as<float>()[i] = 1;
  return t;
}
Result<PairedTimes> in_turn(Session& a, Session& b, const PairedOptions& options) {
  std::mt19937 random(1);
  const std::vector<std::vector<Tensor>> inputs{{input()}};
  return run_in_turn(a, b, inputs, options, random);
}

TEST(PairedRuns, TimeEachKernel) {
  const auto a = session(0), b = session(0);
  const auto times = in_turn(*a, *b, {.seconds = 0, .least = 9, .most = 20});
  ASSERT_TRUE(times.ok()) << times.error().to_string();
  EXPECT_EQ(times->runs().pairs, 9u);
  ASSERT_EQ(times->sizes[0].a.rows.size(), 1u);
  const Comparison c = times->kernel("k0_matmul_relu");
  EXPECT_EQ(c.pairs, 9u);
  EXPECT_GT(c.a, 0);
  EXPECT_LE(c.a, times->runs().a);
  EXPECT_EQ(times->kernel("k1_nobody").pairs, 0u);
  const std::string nodes = times->sizes[0].a.rows[0].nodes;
  EXPECT_EQ(times->nodes({nodes}, {nodes}).pairs, 9u);
  EXPECT_NEAR(times->nodes({nodes}, {nodes}).a, c.a, 0.01);
  EXPECT_EQ(times->nodes({nodes}, {"nobody"}).pairs, 0u);
}
TEST(PairedRuns, EndWithTheirTimeOrWhenTold) {
  const auto a = session(0), b = session(0);
  EXPECT_EQ(in_turn(*a, *b, {.seconds = 100, .least = 2, .most = 12})->runs().pairs, 12u);
  PairedOptions told{.seconds = 100};
  told.stop = [] { return true; };
  EXPECT_EQ(in_turn(*a, *b, told)->runs().pairs, 0u);
}
TEST(PairedRuns, ResultsMustAgree) {
  const auto a = session(0), rounded = session(1e-4f), wrong = session(0.5f);
  const PairedOptions once{.seconds = 0, .least = 1, .most = 1};
  EXPECT_TRUE(in_turn(*a, *rounded, once).ok());
  const auto refused = in_turn(*a, *wrong, once);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().location, "output 0");
  EXPECT_NE(refused.error().message.find("instead of 16.0"), std::string::npos)
      << refused.error().message;
  const auto integers = session(0, true), others = session(1.5f, true);
  EXPECT_TRUE(in_turn(*integers, *integers, once).ok());
  EXPECT_FALSE(in_turn(*integers, *others, once).ok());
}

}  // namespace
}  // namespace tilewright::autotune
