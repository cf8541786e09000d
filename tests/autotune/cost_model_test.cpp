// The learned part of costs: what trees learn, how sure they are, and that only tuning loads them.
#include "autotune/learn/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "autotune/search/prospects.h"
#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"
#include "runtime/session.h"

namespace tilewright::autotune {
namespace {

const Boosting& boosting() {
  const auto b = open_boosting();
  EXPECT_TRUE(b.ok()) << b.error().to_string();
  return **b;
}
constexpr size_t kColumns = 12;
// Rows whose target is 0.5 where the first column is over a half, else 0, up to some noise.
struct Sample {
  std::vector<float> values, targets;
  Rows rows() const { return {values, kColumns}; }
};
Sample sample(size_t count, uint32_t seed, double noise = 0.01) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> even(0, 1);
  std::normal_distribution<double> normal(0, noise);
  Sample s;
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < kColumns; ++c) s.values.push_back(even(random));
    const double step = s.values[i * kColumns] > 0.5F ? 0.5 : 0;
    s.targets.push_back(static_cast<float>(step + normal(random)));
  }
  return s;
}
CostModel taught(const Sample& s, std::shared_ptr<const Ensemble> base = nullptr) {
  CostModel model(&boosting(), std::move(base));
  for (size_t i = 0; i < s.targets.size(); ++i)
    model.learn(std::span(s.values).subspan(i * kColumns, kColumns), s.targets[i]);
  return model;
}
bool is_loaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream all;
  all << maps.rdbuf();
  return all.str().find(library) != std::string::npos;
}

// Runs before what opens the library: in a process of its own, as all tests of this program do.
TEST(Boosting, IsLoadedByTuningAlone) {
  auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[16, 64]\n  y: f32[16, 64] = relu(x)\n  output y as \"y\"\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  auto executable = compile_in_memory(*graph, {});
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  auto session = Session::create(*executable, {.threads = 1});
  ASSERT_TRUE(session.ok());
  std::vector<Tensor> inputs{Tensor::allocate(DType::kFloat32, {16, 64}).value()}, outputs;
  ASSERT_TRUE((*session)->run(inputs, outputs).ok());
  EXPECT_TRUE(is_loaded("tilewright_llvm"));
  EXPECT_FALSE(is_loaded("xgboost"));
  boosting();
  EXPECT_TRUE(is_loaded("xgboost"));
}
TEST(Boosting, FitsTheSameTreesAgain) {
  const Sample s = sample(60, 1);
  auto a = boosting().fit(s.rows(), s.targets, {}, {}, {}),
       b = boosting().fit(s.rows(), s.targets, {}, {}, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ((*a)->save().value(), (*b)->save().value());
}
TEST(Boosting, AddsToWhatItStartsFrom) {
  const Sample s = sample(60, 1);
  const std::vector<float> starts(60, 3);
  std::vector<float> targets = s.targets;
  for (float& t : targets) t += 3;
  auto plain = boosting().fit(s.rows(), s.targets, {}, {}, {}),
       raised = boosting().fit(s.rows(), targets, {}, starts, {});
  ASSERT_TRUE(plain.ok() && raised.ok());
  const auto a = (*plain)->predict(s.rows()), b = (*raised)->predict(s.rows());
  for (size_t i = 0; i < 60; ++i) EXPECT_NEAR((*a)[i], (*b)[i], 1e-3);
}
TEST(Boosting, RefusesWhatIsNoTrees) {
  const Sample s = sample(20, 1);
  auto trees = boosting().fit(s.rows(), s.targets, {}, {}, {});
  const std::vector<uint8_t> saved = (*trees)->save().value();
  auto again = boosting().load(saved, kColumns);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ((*again)->predict(s.rows()).value(), (*trees)->predict(s.rows()).value());
  EXPECT_FALSE(boosting().load(saved, kColumns + 1).ok());
#if !defined( \
    __SANITIZE_ADDRESS__)  // which ends the process where XGBoost asks for more memory than there is
  EXPECT_FALSE(boosting().load(std::vector<uint8_t>(200, 7), kColumns).ok());
#endif
}

TEST(CostModel, LearnsWhatWasMeasured) {
  CostModel model = taught(sample(80, 1));
  const Sample fresh = sample(50, 2, 0);
  const auto seen = model.predict(fresh.rows());
  ASSERT_TRUE(seen.ok()) << seen.error().to_string();
  double error = 0;
  for (size_t i = 0; i < 50; ++i) error += std::abs((*seen)[i].mean - fresh.targets[i]) / 50;
  EXPECT_LT(error, 0.1);
}
TEST(CostModel, IntervalsCover) {
  const double noise = 0.2;
  CostModel model = taught(sample(120, 3, noise));
  const Sample fresh = sample(400, 4, noise);
  const auto seen = model.predict(fresh.rows());
  size_t inside = 0;
  for (size_t i = 0; i < 400; ++i)
    inside += std::abs((*seen)[i].mean - fresh.targets[i]) < 1.645 * (*seen)[i].deviation;
  EXPECT_GE(inside, 330u);  // 90 % are 360
  EXPECT_LE(inside, 390u);
}
TEST(CostModel, GoesOnWithoutTrees) {
  CostModel model(nullptr);
  const Sample s = sample(10, 1);
  for (int i = 0; i < 10; ++i) model.learn(std::span(s.values).first(kColumns), 0.5);
  const auto seen = model.predict(s.rows());
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ((*seen)[0].mean, 0);
  EXPECT_GT((*seen)[0].deviation, 0.1);
}
TEST(CostModel, StartsFromTheBase) {
  const Sample s = sample(80, 1), fresh = sample(20, 2, 0);
  auto fitted = fit_ensemble(boosting(), s.rows(), s.targets, {}, {}, 3);
  ASSERT_TRUE(fitted.ok());
  const auto base = std::make_shared<const Ensemble>(std::move(*fitted));
  CostModel untaught(&boosting(), base), other = taught(sample(40, 5), base);
  const auto a = untaught.predict(fresh.rows()), b = other.predict(fresh.rows());
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < 20; ++i) {
    if (std::abs(fresh.values[i * kColumns] - 0.5F) < 0.1F) continue;
    EXPECT_NEAR((*a)[i].mean, fresh.targets[i], 0.2);
    EXPECT_NEAR((*b)[i].mean, fresh.targets[i], 0.2);
  }
}
TEST(CostModel, BaseOfOtherFeaturesIsRefused) {
  EXPECT_FALSE(load_base_model(boosting(), std::vector<uint8_t>{1, 2, 3}).ok());
  const Sample s = sample(20, 1);
  auto base = fit_ensemble(boosting(), s.rows(), s.targets, {}, {}, 2);
  const auto refused = load_base_model(boosting(), save(*base).value());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("columns"), std::string::npos);
}

// It is of the features that this program has; tests/autotune/replay/run.sh --features makes it anew.
TEST(CostModel, TheShippedBaseIsReadable) {
  const std::span<const uint8_t> shipped = boosting().base_model();
  EXPECT_LE(shipped.size(), size_t{1} << 20);
  const auto base = load_base_model(boosting(), shipped);
  ASSERT_TRUE(base.ok()) << base.error().to_string();
  EXPECT_GE(base->members.size(), 2u);
  EXPECT_GT(base->scale, 0);
}

TEST(Prospects, ImprovementIsThatOfANormalVariable) {
  EXPECT_NEAR(expected_improvement({.mean = 0, .deviation = 1}, 0), 0.39894, 1e-4);
  EXPECT_NEAR(expected_improvement({.mean = -1, .deviation = 1e-9}, 0), 1, 1e-6);
  EXPECT_NEAR(expected_improvement({.mean = 1, .deviation = 0}, 0), 0, 1e-12);
}
TEST(Prospects, TheCheapestFirstWhereNothingIsKnown) {
  for (const Boosting* b : {static_cast<const Boosting*>(nullptr), &boosting()}) {
    Prospects p(std::make_shared<CostModel>(b));
    for (const double cost : {0.3, -0.2, 0.1})
      p.add({.id = static_cast<size_t>(100 * (cost + 1)),
             .log_expected = cost,
             .features = Features(kColumns, static_cast<float>(cost))});
    EXPECT_EQ(p.take(0), 80u);
    EXPECT_EQ(p.take(0), 110u);
    EXPECT_EQ(p.take(0), 130u);
    EXPECT_EQ(p.take(0), std::nullopt);
  }
}
TEST(Prospects, WhatWasLearnedComesBeforeTheCost) {
  auto model = std::make_shared<CostModel>(taught(sample(80, 1)));
  Prospects p(model);
  const Sample s = sample(40, 2, 0);
  for (size_t i = 0; i < 40; ++i) {
    const auto row = s.rows().values.subspan(i * kColumns, kColumns);
    p.add({.id = i, .log_expected = 0, .features = Features(row.begin(), row.end())});
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_LT(s.values[*p.take(0) * kColumns], 0.6F);  // the step is at a half
}
TEST(Prospects, TheGapClosesAsFormsAreMeasured) {
  auto model = std::make_shared<CostModel>(taught(sample(80, 1)));
  Prospects p(model);
  const Sample s = sample(40, 2, 0);
  for (size_t i = 0; i < 40; ++i) {
    const auto row = s.rows().values.subspan(i * kColumns, kColumns);
    p.add({.id = i, .log_expected = 0, .features = Features(row.begin(), row.end())});
  }
  const double wide = p.gap(0.5), narrow = p.gap(0);
  EXPECT_GT(wide, 1 - std::exp(-0.5));  // forms of 0 are known of
  EXPECT_LT(narrow, wide);
  EXPECT_GT(narrow, 0);
  while (p.take(0)) {}
  EXPECT_EQ(p.gap(0), 0);
}

}  // namespace
}  // namespace tilewright::autotune
