#include "tests/autotune/replay/replay_search.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tilewright::autotune {

const char* name(Policy policy) {
  switch (policy) {
    case Policy::kLearned: return "learned";
    case Policy::kAnalytic: return "analytic";
    case Policy::kTrees: return "trees";
    case Policy::kRandom: return "random";
  }
  return "";
}

namespace {

class Replay {
 public:
  Replay(const ReplayTable& table, const ReplayOptions& options)
      : table_(table),
        o_(options),
        random_(options.seed),
        model_(std::make_shared<CostModel>(o_.policy == Policy::kAnalytic ? nullptr : o_.boosting,
                                           o_.policy == Policy::kLearned ? o_.base : nullptr,
                                           o_.seed)),
        prospects_(model_) {}

  Result<ReplayRun> run() {
    draw_forms();
    ReplayRun run{.usual_gap = 1 - least_};
    while (run.trials.size() < o_.most && !run.closed) {
      const auto next = take();
      if (!next) break;
      const double seen = seen_[*next];
      if (seen < best_seen_) best_seen_ = seen, best_ = table_.forms[*next].ratio();
      model_->learn(features(*next), std::log(seen) - log_expected(*next));
      ReplayTrial trial{.best = best_, .true_gap = 1 - least_ / best_};
      if (o_.state >= 0) trial.stated_gap = prospects_.gap(std::log(best_seen_));
      run.trials.push_back(trial);
      run.closed = 1 - best_ >= o_.close * run.usual_gap;
      if (trial.stated_gap <= o_.state) break;
    }
    return run;
  }

 private:
  void draw_forms() {
    for (size_t i = 1; i < table_.forms.size(); ++i) {
      if (random_() % 10 >= 7) continue;
      const ReplayForm& f = table_.forms[i];
      seen_.resize(table_.forms.size());
      seen_[i] = f.ratios[random_() % 2];
      least_ = std::min(least_, f.ratio());
      pool_.push_back(i);
    }
    std::shuffle(pool_.begin(), pool_.end(), random_);
    if (o_.policy == Policy::kRandom) return;
    for (const size_t i : pool_)
      prospects_.add({.id = i, .log_expected = log_expected(i), .features = features(i)});
  }
  std::optional<size_t> take() {
    if (o_.policy != Policy::kRandom) return prospects_.take(std::log(best_seen_));
    if (pool_.empty()) return std::nullopt;
    const size_t i = pool_.back();
    pool_.pop_back();
    return i;
  }
  double log_expected(size_t i) const {
    if (o_.policy == Policy::kTrees) return 0;
    return std::log(table_.forms[i].expected_us / table_.forms[0].expected_us);
  }
  Features features(size_t i) const {
    const auto form = [&](size_t k) {
      Features f = table_.forms[k].features;
      if (o_.policy == Policy::kTrees) std::fill_n(f.begin(), analytic_features(), 0.0F);
      return f;
    };
    return relative_features(form(i), form(0));
  }

  const ReplayTable& table_;
  const ReplayOptions& o_;
  std::mt19937 random_;
  const std::shared_ptr<CostModel> model_;
  Prospects prospects_;
  std::vector<size_t> pool_;
  std::vector<double> seen_;
  double best_seen_ = 1, best_ = 1, least_ = 1;
};

}  // namespace

Result<ReplayRun> replay(const ReplayTable& table, const ReplayOptions& options) {
  return Replay(table, options).run();
}

}  // namespace tilewright::autotune
