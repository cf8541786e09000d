// Which answers to a graph's decisions are tried again with tuned kernels, and what tuning them touches.
#include "autotune/second_chances.h"

#include <gtest/gtest.h>

#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"

namespace tilewright::autotune {
namespace {

GraphTrial trial(const std::string& name, double a, double ratio) {
  GraphTrial t{.alike = name, .answer = "other", .answers = {{name, 1}}};
  t.measured = {.ratio = ratio, .low = ratio, .high = ratio, .pairs = 9, .a = a, .b = a * ratio};
  return t;
}
std::vector<std::string> names(const std::vector<GraphTrial>& trials) {
  std::vector<std::string> found;
  for (const GraphTrial& t : trials) found.push_back(t.alike);
  return found;
}

TEST(SecondChances, AreForWhatMightSaveMost) {
  TunedGraph tuned;
  tuned.trials = {trial("near", 100, 1.02), trial("far", 100, 1.8), trial("short", 1, 1.01),
                  trial("large", 500, 1.1), trial("near", 100, 1.03)};
  EXPECT_EQ(names(second_chances(tuned, 1000)), (std::vector<std::string>{"large", "near"}));
}
TEST(SecondChances, AreAlsoForWhatWasReplaced) {
  TunedGraph tuned;
  tuned.trials = {trial("taken", 100, 0.9), trial("far better", 100, 0.5)};
  for (GraphTrial& t : tuned.trials) t.before = {{t.alike, 7}}, t.confirmed = true;
  const auto chances = second_chances(tuned, 1000);
  ASSERT_EQ(names(chances), std::vector<std::string>{"taken"});
  EXPECT_EQ(chances[0].answers, tuned.trials[0].before);
  EXPECT_NEAR(chances[0].measured.ratio, 1 / 0.9, 1e-9);
}
TEST(SecondChances, AreNotForWhatIsWrong) {
  TunedGraph tuned;
  tuned.trials = {trial("taken", 100, 0.2), trial("wrong", 100, 1), trial("unmeasured", 100, 1)};
  tuned.trials[0].confirmed = true;
  tuned.trials[1].refused = "it crashed";
  tuned.trials[2].measured.pairs = 0;
  EXPECT_TRUE(second_chances(tuned, 1000).empty());
}
TEST(SecondChances, AreFew) {
  TunedGraph tuned;
  for (int i = 0; i < 20; ++i) tuned.trials.push_back(trial("d" + std::to_string(i), 100, 1.1));
  const size_t given = second_chances(tuned, 1000).size();
  EXPECT_GT(given, 0u);
  EXPECT_LE(given, 6u);
}

// A product that both graphs have, and one that each has in its own way.
ir::Graph graph(const std::string& last) {
  std::vector<float> weights(300 * 64, 0.01f);
  auto g = ir::parse_graph(
      "graph g {\n  input x: f32[40, 300]\n  const w: f32[300, 64] = #0\n"
      "  t: f32[40, 64] = matmul(x, w)\n" +
          last + "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {300, 64}, weights)});
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  return std::move(*g);
}

class SecondChance : public testing::Test {
 protected:
  SecondChance() {
    how_.seconds = [this] { return static_cast<double>(calls_++); };
    for (int64_t i = 0; i < inputs_[0][0].element_count(); ++i)
      inputs_[0][0].data_as<float>()[i] = static_cast<float>(i % 23) / 23;
  }
  GraphForm form(const std::string& last) const {
    auto f = graph_form(graph(last), lower_, {});
    EXPECT_TRUE(f.ok()) << f.error().to_string();
    return std::move(*f);
  }
  KernelTuner tuner(const GraphForm& f) {
    return KernelTuner(compiler_, plan_of(f.graph), inputs_, how_, random_);
  }

  const passes::LowerOptions lower_ = lower_options({}).value();
  const ModelCompiler compiler_{lower_, assemble_options({}, lower_.machine, "g"), 1};
  std::vector<std::vector<Tensor>> inputs_{{Tensor::allocate(DType::kFloat32, {40, 300}).value()}};
  std::mt19937 random_{1};
  double calls_ = 0;
  KernelTuneOptions how_{.model = std::make_shared<CostModel>(nullptr, nullptr, 1)};
};

TEST_F(SecondChance, TunesTheKernelsThatTheOtherFormDoesNotHave) {
  const GraphForm a = form("  y: f32[40, 64] = softmax(t) {axis = 1}\n");
  const GraphForm b = form("  y: f32[40, 64] = softmax(t) {axis = 0}\n");
  KernelTuner first = tuner(a), second = tuner(b);
  ASSERT_TRUE(first.start().ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(first.round().ok());
  ASSERT_TRUE(second.start(&first).ok());
  ASSERT_TRUE(second.round().ok());
  const std::vector<TunedKernel> of_first = first.take_kernels(), of_second = second.take_kernels();
  ASSERT_EQ(of_second.size(), 2u);
  size_t adopted = 0;
  for (const TunedKernel& k : of_second)
    for (const TunedKernel& same : of_first)
      if (k.task == same.task) {
        ++adopted;
        EXPECT_EQ(k.trials.size(), same.trials.size()) << k.name;
      }
  EXPECT_EQ(adopted, 1u);
}

// Of two forms at most one is faster than the other, and which is said by their own kernels' times.
TEST_F(SecondChance, EndsWithAComparisonOfTunedForms) {
  std::vector<float> weights(32 * 32 * 9, 0.01f);
  const auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[1, 32, 24, 24]\n  const w: f32[32, 32, 3, 3] = #0\n"
      "  y: f32[1, 32, 24, 24] = conv(x, w) {pads = [1, 1, 1, 1]} from \"node\"\n"
      "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {32, 32, 3, 3}, weights)});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  inputs_ = {{Tensor::allocate(DType::kFloat32, {1, 32, 24, 24}).value()}};
  for (int64_t i = 0; i < inputs_[0][0].element_count(); ++i)
    inputs_[0][0].data_as<float>()[i] = static_cast<float>(i % 23) / 23;
  const GraphForm direct = graph_form(*graph, lower_, {{"y.winograd", 0}}).value(),
                  winograd = graph_form(*graph, lower_, {{"y.winograd", 2}}).value();
  KernelTuner a = tuner(direct), b = tuner(winograd);
  ASSERT_TRUE(a.start().ok());
  ASSERT_TRUE(b.start(&a).ok());
  size_t faster = 0;
  for (const bool forwards : {true, false}) {
    const TunedForm of_a{direct, a}, of_b{winograd, b};
    const auto again = try_again(trial("d", 100, 1.1), forwards ? of_a : of_b,
                                 forwards ? of_b : of_a, inputs_, random_);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_TRUE(again->tuned);
    EXPECT_GT(again->measured.pairs, 0u);
    EXPECT_LT(again->measured.a, 1e6);  // microseconds
    EXPECT_TRUE(!again->confirmed || again->measured.high < 1);
    faster += again->confirmed;
  }
  EXPECT_LE(faster, 1u);
}
TEST_F(SecondChance, IsNotForOtherResults) {
  const GraphForm a = form("  y: f32[40, 64] = softmax(t) {axis = 1}\n"),
                  b = form("  y: f32[40, 64] = softmax(t) {axis = 0}\n");
  KernelTuner first = tuner(a), second = tuner(b);
  ASSERT_TRUE(first.start().ok());
  ASSERT_TRUE(second.start(&first).ok());
  EXPECT_FALSE(try_again(trial("d", 100, 1.1), {a, first}, {b, second}, inputs_, random_).ok());
}

}  // namespace
}  // namespace tilewright::autotune
