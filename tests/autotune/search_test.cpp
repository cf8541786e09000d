// The search: forms that are new, legal and ordered by what they should cost; from the best one on.
#include "autotune/search/search.h"

#include <gtest/gtest.h>

#include "ir/loops/compare.h"
#include "ir/text/parser_loops.h"
#include "passes/schedule/rules/choose_trace.h"
#include "runtime/core/fnv.h"

namespace tilewright::autotune {
namespace {

ir::Kernel product() {
  auto kernel = ir::parse_kernel(
      "kernel k(x: f32[61, 96], w: f32[96, 80], y: f32[61, 80]) {\n"
      "  for i in 0..61 {\n    for j in 0..80 {\n      for r in 0..96 {\n"
      "        block \"matmul\" (vi: parallel 61 = i, vj: parallel 80 = j, vr: reduce 96 = r) init "
      "{\n          y[vi, vj] = 0.0\n        } body {\n"
      "          y[vi, vj] = y[vi, vj] + x[vi, vr] * w[vr, vj]\n        }\n      }\n    }\n  "
      "}\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  return *kernel;
}
Search started(SearchOptions how = {}) {
  auto search = Search::start(product(), {"w"}, passes::LowerOptions(), std::move(how));
  EXPECT_TRUE(search.ok()) << search.error().to_string();
  return std::move(*search);
}

TEST(Search, FormsAreNewAndLegal) {
  Search s = started();
  s.weigh(1000);
  std::set<std::string> schedules{passes::to_string(s.usual().schedule)};
  size_t forms = 0;
  double before = 0;
  while (auto c = s.next()) {
    EXPECT_TRUE(schedules.insert(passes::to_string(c->schedule)).second);
    EXPECT_TRUE(passes::apply_trace(product(), c->schedule).ok());
    ++forms;
    EXPECT_TRUE(forms > 3 || c->expected_us >= before);  // neighbours, the most promising first
    before = c->expected_us;
  }
  EXPECT_GT(forms, 3u);
}
TEST(Search, GoesOnFromTheBestForm) {
  Search s = started();
  EXPECT_FALSE(s.improved());
  auto first = s.next();
  ASSERT_TRUE(first.has_value());
  const passes::Answers answers = first->answers;
  s.accept(std::move(*first));
  EXPECT_TRUE(s.improved());
  bool builds_on_it = false;
  while (auto c = s.next()) {
    bool all = c->answers.size() > answers.size();
    for (const auto& [name, value] : answers) all &= c->answers.count(name) != 0;
    builds_on_it |= all;
  }
  EXPECT_TRUE(builds_on_it);
}
// An answer that does no harm may be worth something with another one.
TEST(Search, LooksAroundFormsThatAreAsFast) {
  const auto alone = started().next();
  ASSERT_TRUE(alone.has_value());
  ASSERT_EQ(alone->answers.size(), 1u);
  const auto pairs_with_it = [&](double ratio) {
    Search s = started();
    size_t pairs = 0;
    while (auto c = s.next()) {
      pairs += c->answers.size() == 2 && c->answers.count(alone->answers.begin()->first);
      s.report(*c, c->answers == alone->answers ? ratio : 1.3);
    }
    return pairs;
  };
  EXPECT_GT(pairs_with_it(1.01), pairs_with_it(1.3) + 5);
}
TEST(Search, SaysWhatItsBestFormChanged) {
  EXPECT_TRUE(started().changes().empty());
  const passes::LowerOptions options;
  const auto usual =
      passes::choose_trace(product(), {.machine = &options.machine, .constants = {"w"}});
  ASSERT_TRUE(usual.ok());
  size_t forms = 0;
  for (const passes::Decision& d : usual->decisions)
    for (const int64_t value : d.values) {
      const Search s = started({.from = {{d.name, value}}});
      if (!s.improved()) continue;
      ++forms;
      bool told = false;
      for (const passes::Decision& c : s.changes()) {
        EXPECT_NE(c.answer, c.usual) << c.name;
        EXPECT_EQ(c.values, (std::vector<int64_t>{c.usual, c.answer})) << c.name;
        EXPECT_EQ(c.microseconds.at(0), s.usual().expected_us);
        if (c.name != d.name) continue;
        told = true;
        EXPECT_EQ(c.usual, d.answer) << c.name;
        EXPECT_EQ(c.labels.size(), d.labels.empty() ? 0u : 2u) << c.name;
        EXPECT_EQ(c.microseconds.at(1), s.best().expected_us) << c.name;
      }
      EXPECT_TRUE(told || value == d.answer) << d.name << " = " << value;
    }
  EXPECT_GT(forms, 3u);
}
TEST(Search, StartsFromWhatIsKnown) {
  auto first = started().next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(started({.from = first->answers}).best().schedule, first->schedule);
  // What is no answer any more is passed over.
  EXPECT_FALSE(started({.from = {{"matmul.rows", 1000}}}).improved());
  EXPECT_FALSE(started({.from = {{"nobody.asks", 1}}}).improved());
}
// Sums of rows, whose partial sums may be in as many vectors as one likes: other bits.
TEST(Search, KeepsBitsWhereAsked) {
  auto kernel = ir::parse_kernel(
      "kernel k(x: f32[64, 1000], y: f32[64]) {\n  for i in 0..64 {\n    for r in 0..1000 {\n"
      "      block \"sum\" (vi: parallel 64 = i, vr: reduce 1000 = r) init {\n        y[vi] = 0.0\n"
      "      } body {\n        y[vi] = y[vi] + x[vi, vr]\n      }\n    }\n  }\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  passes::LowerOptions options;
  size_t changing = 0;
  for (const bool same_bits : {false, true}) {
    auto search = Search::start(*kernel, {}, options, {.same_bits = same_bits});
    ASSERT_TRUE(search.ok()) << search.error().to_string();
    while (auto c = search->next()) {
      auto choice = passes::choose_trace(
          *kernel, {.machine = &options.machine, .constants = {}, .answers = c->answers});
      ASSERT_TRUE(choice.ok());
      for (const passes::Decision& d : choice->decisions) {
        const bool changes = c->answers.count(d.name) && d.bits == passes::Bits::kChanged;
        EXPECT_FALSE(same_bits && changes) << d.name;
        changing += changes;
      }
    }
  }
  EXPECT_GT(changing, 0u);
}

// As if measured: a form with fewer rows in its tile is slower, by a little of chance.
double measured(const Candidate& c) {
  const auto rows = c.answers.find("matmul.rows");
  const double chance = static_cast<double>(fnv1a(passes::to_string(c.schedule)) % 100) * 1e-4;
  return rows == c.answers.end() ? 0.9 + chance
                                 : 1.3 - 0.02 * static_cast<double>(rows->second) + chance;
}
std::shared_ptr<CostModel> model() {
  const auto boosting = open_boosting();
  EXPECT_TRUE(boosting.ok()) << boosting.error().to_string();
  return std::make_shared<CostModel>(*boosting);
}
// The schedules of the first so many trials, as hashes.
std::vector<uint64_t> trials(Search& s, size_t count) {
  std::vector<uint64_t> schedules;
  while (schedules.size() < count) {
    s.weigh(100);
    auto c = s.next();
    if (!c) break;
    schedules.push_back(fnv1a(passes::to_string(c->schedule)));
    s.report(*c, measured(*c));
    if (c->ratio < s.best().ratio) s.accept(std::move(*c));
  }
  return schedules;
}
TEST(Search, TheSameMeasurementsLeadTheSameWay) {
  Search a = started({.model = model()}), b = started({.model = model()});
  const auto way = trials(a, 15);
  EXPECT_EQ(way.size(), 15u);
  EXPECT_EQ(way, trials(b, 15));
  EXPECT_EQ(a.best().schedule, b.best().schedule);
}
// What was measured for one kernel has a say in what is measured of another.
TEST(Search, WhatWasLearnedIsShared) {
  const auto shared = model();
  Search teacher = started({.model = shared});
  trials(teacher, 40);
  std::vector<std::vector<uint64_t>> ways;
  for (const auto& m : {shared, model()}) {
    Search s = started({.model = m});
    s.weigh(200);
    ways.emplace_back();
    while (auto c = s.next()) ways.back().push_back(fnv1a(passes::to_string(c->schedule)));
  }
  EXPECT_NE(ways[0], ways[1]);
  std::sort(ways[0].begin(), ways[0].end());
  std::sort(ways[1].begin(), ways[1].end());
  EXPECT_EQ(ways[0], ways[1]);
}
TEST(Search, StatesHowMuchMayBeLeft) {
  EXPECT_EQ(started().gap(), 1);
  Search s = started({.model = model()});
  EXPECT_EQ(s.gap(), 1);  // not all forms near the usual one are weighed
  s.weigh(100);
  const double before = s.gap();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 1);
  trials(s, 60);
  EXPECT_LT(s.gap(), before);
}

}  // namespace
}  // namespace tilewright::autotune
