// The cost model on kept measurements, without a clock: what it is worth, part by part, and whether
// what it states holds. The bars are below what replay/results.md says, which is of more seeds.
#include <gtest/gtest.h>

#include "tests/autotune/replay/comparison_of_ways.h"

namespace tilewright::autotune {
namespace {

const std::vector<ReplayTable>& tables() {
  static const std::vector<ReplayTable> all = [] {
    auto read = read_tables(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/autotune/replay/tables");
    EXPECT_TRUE(read.ok()) << read.error().to_string();
    return read.ok() ? std::move(*read) : std::vector<ReplayTable>{};
  }();
  return all;
}
const ReplayTable& table(const std::string& name) {
  for (const ReplayTable& t : tables())
    if (t.name == name) return t;
  ADD_FAILURE() << name;
  return tables()[0];
}
const Boosting* boosting() { return open_boosting().value(); }

TEST(Replay, TablesAreOfTheFeaturesThatThereAre) {
  EXPECT_EQ(tables().size(), 14u);
  for (const ReplayTable& t : tables()) {
    EXPECT_EQ(t.features, feature_names()) << t.name << ": tests/autotune/replay/run.sh --features";
    EXPECT_GE(t.forms.size(), 100u) << t.name;
  }
}
TEST(Replay, MeasurementsAgreeWithThemselves) {
  for (const ReplayTable& t : tables()) {
    std::vector<double> first, second;
    for (const ReplayForm& f : t.forms) first.push_back(f.ratios[0]), second.push_back(f.ratios[1]);
    EXPECT_GT(spearman(first, second), 0.9) << t.name;
  }
}
TEST(Replay, TheSameSeedMeasuresTheSameForms) {
  const ReplayOptions options{.boosting = boosting(), .seed = 3, .most = 30, .state = 0};
  const auto a = replay(table("transpose"), options), b = replay(table("transpose"), options);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->trials.size(), b->trials.size());
  for (size_t i = 0; i < a->trials.size(); ++i) {
    EXPECT_EQ(a->trials[i].best, b->trials[i].best);
    EXPECT_EQ(a->trials[i].stated_gap, b->trials[i].stated_gap);
  }
}
// The analytic cost and what is learned on top of it need fewer trials together than either alone.
TEST(Replay, BothPartsOfTheCostAreWorthIt) {
  const auto tasks =
      compare_ways(tables(), {Way::kLearned, Way::kAnalytic, Way::kTrees, Way::kRandom}, 5);
  ASSERT_TRUE(tasks.ok()) << tasks.error().to_string();
  EXPECT_LE(mean_trials(*tasks, Way::kLearned), 32);
  for (const auto& [over, bar] :
       {std::pair{Way::kAnalytic, 0.7}, {Way::kTrees, 0.7}, {Way::kRandom, 0.4}}) {
    const Advantage a = advantage(*tasks, Way::kLearned, over);
    EXPECT_LE(a.ratio, bar) << name(over);
    EXPECT_LT(a.p, 0.01) << name(over) << ": " << a.wins << " to " << a.losses;
  }
}
TEST(Replay, StatedGapsHold) {
  const auto gaps = stated_gaps(tables(), 2, 60);
  ASSERT_TRUE(gaps.ok()) << gaps.error().to_string();
  EXPECT_GE(gaps->stated, 5u);
  EXPECT_GE(static_cast<double>(gaps->held), 0.9 * static_cast<double>(gaps->stated));
}
TEST(Replay, WhatWasLearnedHoldsForOtherRules) {
  const auto base = fit_base_model(*boosting(), tables(), "tile");
  ASSERT_TRUE(base.ok()) << base.error().to_string();
  for (const ReplayTable& t : tables()) {
    if (t.rule != "tile") continue;
    const auto x = transfer_to(*base, t);
    ASSERT_TRUE(x.ok());
    EXPECT_GT(x->learned, x->analytic + 0.03) << t.name;
    EXPECT_GE(x->covered, 0.75) << t.name;
  }
}

}  // namespace
}  // namespace tilewright::autotune
