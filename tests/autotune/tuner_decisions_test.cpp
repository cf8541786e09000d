// What a tuner accepts, keeps, refuses and withdraws on times that are made up, tuning after tuning of one database in
// which others write, too: against the rules, applied to the times as they are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "autotune/database/database.h"
#include "autotune/database/task.h"
#include "autotune/search/priced_form.h"
#include "frontends/compiler/tune.h"
#include "ir/module_text/parser_graph.h"
#include "tests/autotune/made_up_times.h"
#include "tests/autotune/random_seeds.h"

namespace tilewright::autotune {
namespace {

using passes::Answers;

// Two kernels that differ in length, so that the threshold for keeping a form differs, too.
ir::Graph graph() {
  std::vector<float> weights(24 * 16, 0.25f);
  auto g = ir::parse_graph(
      "graph g {\n  input x: f32[10, 24]\n  const w: f32[24, 16] = #0\n"
      "  t: f32[10, 16] = matmul(x, w)\n  y: f32[10, 16] = softmax(t) {axis = 1}\n"
      "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {24, 16}, weights)});
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  return std::move(*g);
}

// What is known of a kernel before it is tuned.
struct Begin {
  Answers answers;
  bool recorded = false;
};

class TunerDecisions : public testing::Test {
 protected:
  TunerDecisions() {
    options_.database = path_;
    float* x = inputs_[0][0].data_as<float>();
    for (int64_t i = 0; i < inputs_[0][0].element_count(); ++i)
      x[i] = static_cast<float>(i % 7) - 3;
  }
  ~TunerDecisions() override { std::filesystem::remove(path_); }

  Database database() const {
    auto db = Database::open(path_);
    EXPECT_TRUE(db.ok() && db->damaged().empty());
    return std::move(*db);
  }
  TuneResult tuned(size_t trials) {
    TuneOptions how{.seconds = 1e6, .trials = trials};
    how.seed = times_.seed;
    how.measure = times_.as_measure();
    auto result = tune(graph_, inputs_, options_, how);
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    return result.ok() ? std::move(*result) : TuneResult();
  }
  // Lowers the graph and records each kernel under its task key, as the tuner does.
  void find_kernels() {
    const auto add = [&](ir::Kernel k, const std::set<std::string>& constants) {
      kernels_[task_key(k, constants)] = {k, constants};
      return passes::lower_kernel(std::move(k), constants, lower_);
    };
    const auto fused = passes::lower_graph(graph_, lower_);
    ASSERT_TRUE(fused.ok() && passes::lower_fused(*fused, lower_, add).ok());
  }
  // Microseconds of a kernel with these answers; none: no schedule follows.
  std::optional<double> us(const std::string& task, const Answers& answers) const {
    const auto& [kernel, constants] = kernels_.at(task);
    const auto schedule = schedule_of(kernel, constants, lower_, answers);
    if (!schedule.ok()) return std::nullopt;
    return times_.of(kernel.name, passes::to_string(*schedule));
  }
  static Begin begin_of(const Database& db, const TunedKernel& k, const std::string& device) {
    if (const Record* r = db.newest(k.task, device))
      return r->state == Record::State::kWithdrawn
                 ? Begin{}
                 : Begin{r->answers, db.find(k.task, device) != nullptr};
    const Record* like = db.find_like(k.task, k.family, device);
    return like ? Begin{like->answers} : Begin{};
  }

  // Checks the outcome for one kernel against the tuner's rules. `sure`: the measured pairs agree; if they do not, the
  // confidence interval of every candidate contains 1.
  void check(const TunedKernel& k, const Begin& begin, bool sure) const {
    const double usual = *us(k.task, {});
    Answers best;
    double ratio = 1;
    const auto known = begin.answers.empty() ? std::nullopt : us(k.task, begin.answers);
    if (known && (begin.recorded ? *known <= usual : *known < usual))
      best = begin.answers, ratio = *known / usual;
    for (const Trial& t : k.trials) {
      ASSERT_EQ(t.refused, "") << k.name;
      const double to_best = *us(k.task, t.answers) / usual / ratio;
      EXPECT_NEAR(t.measured.ratio, to_best, 1e-4) << k.name;
      ASSERT_EQ(t.confirmed, sure && to_best < kWorthwhile) << k.name << " " << to_best;
      if (t.confirmed) best = t.answers, ratio *= to_best;
    }
    const bool held = begin.recorded && ratio < 1;
    const bool improved = !best.empty() && (ratio < worth_keeping(usual) || held);
    ASSERT_EQ(k.improved, improved) << k.name << " " << ratio;
    EXPECT_EQ(k.recorded, begin.recorded) << k.name;
    EXPECT_EQ(k.withdrawn, begin.recorded && !improved) << k.name;
    EXPECT_NEAR(k.us, usual, usual * 1e-4);
    if (improved) {
      EXPECT_EQ(k.best.answers, best) << k.name;
      EXPECT_NEAR(k.gain.ratio, ratio, 1e-4) << k.name;
    }
  }
  // And what is left of it in the database.
  static void check_records(const Database& before, const Database& after, const TunedKernel& k,
                            const std::string& device) {
    const Record *was = before.find(k.task, device), *is = after.find(k.task, device);
    if (k.improved) {
      ASSERT_NE(is, nullptr) << k.name;
      EXPECT_EQ(is->answers, k.best.answers);
      EXPECT_EQ(is->family, k.family);
      EXPECT_EQ(passes::to_string(is->schedule), passes::to_string(k.best.schedule));
    } else {
      EXPECT_EQ(is, nullptr) << k.name;
      EXPECT_EQ(k.withdrawn, was != nullptr) << k.name;
      if (const Record* last = after.newest(k.task, device); k.withdrawn && last) {
        EXPECT_EQ(last->state, Record::State::kWithdrawn) << k.name;
      }
    }
    std::vector<Answers> accepted, written;
    for (const Trial& t : k.trials)
      if (t.confirmed) accepted.push_back(t.answers);
    for (size_t i = before.records().size(); i < after.records().size(); ++i) {
      const Record& r = after.records()[i];
      EXPECT_EQ(r.device, device);
      EXPECT_GT(r.low, 0);
      if (r.task == k.task && r.state == Record::State::kProvisional) written.push_back(r.answers);
    }
    EXPECT_EQ(written, accepted) << k.name;
  }

  // A record that another process wrote: of this kernel or of one like it, from trials or wrong.
  void plant(const TuneResult& last, std::mt19937& random, const std::string& device) const {
    Database db = database();
    const TunedKernel& k = last.kernels[random() % last.kernels.size()];
    Record r{.task = k.task, .device = device, .family = k.family, .schedule = {}};
    r.usual_us = r.tuned_us = r.low = r.high = 1;
    r.state = static_cast<Record::State>(random() % 3);
    if (!k.trials.empty()) r.answers = k.trials[random() % k.trials.size()].answers;
    switch (random() % 4) {
      case 0: r.device = "another, 1 thread, standard"; break;
      case 1: r.task = "of other extents"; break;
      case 2: r.answers = {{"nobody.asks", 3}}; break;
      default: break;
    }
    ASSERT_TRUE(db.append(r).ok());
  }

  const std::string path_ = testing::TempDir() + "decisions_" + std::to_string(getpid()) + ".jsonl";
  CompileOptions options_;
  const passes::LowerOptions lower_ = lower_options({}).value();
  const ir::Graph graph_ = graph();
  std::vector<std::vector<Tensor>> inputs_{{Tensor::allocate(DType::kFloat32, {10, 24}).value()}};
  std::map<std::string, std::pair<ir::Kernel, std::set<std::string>>> kernels_;
  MadeUpTimes times_;
};

TEST_F(TunerDecisions, FollowFromTheTimes) {
  find_kernels();
  const std::string device = device_key(lower_.machine, Numerics::kStandard);
  for (const uint32_t seed : random_seeds(1)) {
    std::filesystem::remove(path_);
    std::mt19937 random(seed);
    for (int generation = 0; generation < 3; ++generation) {
      const uint32_t weather = random() % 4;
      SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + ", tuning " +
                   std::to_string(generation) + ", weather " + std::to_string(weather));
      if (generation == 0 || random() % 2) times_.seed = random() % 1000;
      times_.us = random() % 2 ? 100 : 20;  // long or short kernels
      times_.drift = times_.error = nullptr;
      if (weather == 1) times_.drift = [](size_t i) { return std::exp2(i * 7 % 5 - 2.0); };
      if (weather == 2) times_.error = [](size_t i) { return i == 5 ? 64.0 : 1.0; };
      if (weather == 3) times_.error = [](size_t i) { return std::exp2(i % 3 - 1.0); };
      const Database before = database();
      const TuneResult result = tuned(8);
      const Database after = database();
      ASSERT_EQ(result.kernels.size(), kernels_.size());
      for (const TunedKernel& k : result.kernels) {
        check(k, begin_of(before, k, device), weather != 3);
        check_records(before, after, k, device);
      }
      if (HasFatalFailure() || HasFailure()) return;
      for (int i = 0; i < 2; ++i) plant(result, random, device);
    }
  }
}

}  // namespace
}  // namespace tilewright::autotune
