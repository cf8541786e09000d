#include "tests/autotune/replay/comparison_of_ways.h"

#include <cmath>

namespace tilewright::autotune {

namespace {

constexpr double kPart = 0.7;
constexpr size_t kMost = 200;
size_t column(Way way) { return static_cast<size_t>(way); }

Policy policy(Way way) {
  switch (way) {
    case Way::kAnalytic: return Policy::kAnalytic;
    case Way::kTrees: return Policy::kTrees;
    case Way::kRandom: return Policy::kRandom;
    case Way::kLearned:
    case Way::kBase: return Policy::kLearned;
  }
  return Policy::kLearned;
}

}  // namespace

const char* name(Way way) {
  return way == Way::kBase ? "learned, from the base model" : name(policy(way));
}

Result<std::vector<TaskTrials>> compare_ways(const std::vector<ReplayTable>& tables,
                                             const std::vector<Way>& ways, uint32_t seeds) {
  TW_ASSIGN(const Boosting* boosting, open_boosting());
  std::vector<TaskTrials> all;
  for (const ReplayTable& table : tables) {
    TaskTrials task{.task = table.name, .forms = table.forms.size()};
    for (const Way way : ways) {
      ReplayOptions options{
          .policy = policy(way), .boosting = boosting, .most = kMost, .close = kPart};
      if (way == Way::kBase) {
        TW_ASSIGN(Ensemble base, fit_base_model(*boosting, tables, table.rule));
        options.base = std::make_shared<const Ensemble>(std::move(base));
      }
      for (options.seed = 1; options.seed <= seeds; ++options.seed) {
        TW_ASSIGN(const ReplayRun run, replay(table, options));
        task.trials[column(way)].push_back(
            static_cast<double>(run.closed ? run.trials.size() : kMost));
        if (way == ways[0]) task.gap += run.usual_gap / seeds;
      }
    }
    all.push_back(std::move(task));
  }
  return all;
}

double mean_trials(const TaskTrials& task, Way way) {
  const std::vector<double>& trials = task.trials[column(way)];
  double sum = 0;
  for (const double t : trials) sum += std::log(t);
  return std::exp(sum / static_cast<double>(trials.size()));
}
double mean_trials(const std::vector<TaskTrials>& tasks, Way way) {
  double sum = 0;
  for (const TaskTrials& t : tasks) sum += std::log(mean_trials(t, way));
  return std::exp(sum / static_cast<double>(tasks.size()));
}

Advantage advantage(const std::vector<TaskTrials>& tasks, Way way, Way over) {
  Advantage a{.ratio = mean_trials(tasks, way) / mean_trials(tasks, over)};
  for (const TaskTrials& t : tasks)
    for (size_t i = 0; i < t.trials[column(way)].size(); ++i) {
      a.wins += t.trials[column(way)][i] < t.trials[column(over)][i];
      a.losses += t.trials[column(way)][i] > t.trials[column(over)][i];
    }
  // P(at least so many of n fair coins), by logarithms of factorials.
  const auto n = static_cast<double>(a.wins + a.losses);
  a.p = 0;
  for (auto k = static_cast<double>(a.wins); k <= n; ++k)
    a.p += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                    n * std::log(2.0));
  return a;
}

Result<StatedGaps> stated_gaps(const std::vector<ReplayTable>& tables, uint32_t seeds,
                               size_t most) {
  constexpr double kStated = 0.05;
  TW_ASSIGN(const Boosting* boosting, open_boosting());
  StatedGaps gaps;
  for (const ReplayTable& table : tables)
    for (uint32_t seed = 1; seed <= seeds; ++seed) {
      TW_ASSIGN(
          const ReplayRun run,
          replay(table, {.boosting = boosting, .seed = seed, .most = most, .state = kStated}));
      ++gaps.runs;
      if (run.trials.empty() || run.trials.back().stated_gap > kStated) continue;
      ++gaps.stated;
      gaps.held += run.trials.back().true_gap <= kStated;
      gaps.trials += static_cast<double>(run.trials.size());
    }
  if (gaps.stated > 0) gaps.trials /= static_cast<double>(gaps.stated);
  return gaps;
}

}  // namespace tilewright::autotune
