// Prints what the cost model is worth on kept measurements, as a page; with a file's name, also fits
// the base model to all of them and writes it. usage: report_replay FOLDER SEEDS [BASE_MODEL]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/autotune/replay/comparison_of_ways.h"

namespace tilewright::autotune {

namespace {

void print_row(const TaskTrials& t) {
  std::printf("| %s | %zu | %.1f %%", t.task.c_str(), t.forms, 100 * t.gap);
  for (const Way way : kWays) std::printf(" | %.1f", mean_trials(t, way));
  std::printf(" |\n");
}
void print_advantage(const std::vector<TaskTrials>& tasks, Way way, Way over) {
  const Advantage a = advantage(tasks, way, over);
  std::printf(
      "- %s over %s: %.2f times the trials; fewer in %zu pairs of task and seed, more in %zu"
      " (sign test: p = %.1g)\n",
      name(way), name(over), a.ratio, a.wins, a.losses, a.p);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

Status report_trials(const std::vector<ReplayTable>& tables, uint32_t seeds) {
  TW_ASSIGN(const std::vector<TaskTrials> tasks,
            compare_ways(tables, {kWays.begin(), kWays.end()}, seeds));
  std::printf(
      "# What the learned costs are worth\n\n"
      "Trials until 70 %% of the gap from the usual form to the best one are closed, in the "
      "search over kept\nmeasurements (replay_task.cpp says of what): geometric means of %u "
      "seeds. `analytic`: the analytic cost\nalone; `trees`: XGBoost without it; `base "
      "model`: fitted to all tasks but those of the same rule.\n\n"
      "| task | forms | gap | learned | analytic | trees | random | with a base model |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      seeds);
  for (const TaskTrials& t : tasks) print_row(t);
  std::printf("| geometric mean | | ");
  for (const Way way : kWays) std::printf(" | %.1f", mean_trials(tasks, way));
  std::printf(" |\n\n");
  for (const Way over : {Way::kAnalytic, Way::kTrees, Way::kRandom})
    print_advantage(tasks, Way::kLearned, over);
  print_advantage(tasks, Way::kBase, Way::kLearned);
  TW_ASSIGN(const StatedGaps gaps, stated_gaps(tables, seeds, 100));
  std::printf(
      "- \"within 5 %% of the best\" was stated in %zu of %zu runs of 100 trials, after %.0f"
      " on average; it held in %zu of them\n\n",
      gaps.stated, gaps.runs, gaps.trials, gaps.held);
  return {};
}

Status report_transfer(const Boosting& boosting, const std::vector<ReplayTable>& tables) {
  std::printf(
      "Forms of a task, by a base model that has seen none of its rule: rank correlation "
      "(Spearman) with the measured\ntimes, and how many times lie in the 90 %% intervals.\n\n"
      "| task | analytic | with the base model | covered |\n| --- | --- | --- | --- |\n");
  std::vector<double> analytic, learned, covered;
  for (const ReplayTable& t : tables) {
    TW_ASSIGN(const Ensemble base, fit_base_model(boosting, tables, t.rule));
    TW_ASSIGN(const Transfer x, transfer_to(base, t));
    analytic.push_back(x.analytic), learned.push_back(x.learned), covered.push_back(x.covered);
    std::printf("| %s | %.2f | %.2f | %.0f %% |\n", t.name.c_str(), x.analytic, x.learned,
                100 * x.covered);
  }
  std::printf("| median | %.2f | %.2f | %.0f %% |\n", median(analytic), median(learned),
              100 * median(covered));
  return {};
}

Status run(const std::string& folder, uint32_t seeds, const std::string& base_model) {
  TW_ASSIGN(const std::vector<ReplayTable> tables, read_tables(folder));
  TW_ASSIGN(const Boosting* boosting, open_boosting());
  if (!base_model.empty()) {
    TW_ASSIGN(const Ensemble base, fit_base_model(*boosting, tables));
    TW_ASSIGN(const std::vector<uint8_t> bytes, save(base));
    std::ofstream file(base_model, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return Error{ErrorKind::kIo, "cannot write " + base_model};
  }
  if (seeds == 0) return {};
  TW_RETURN_IF_ERROR(report_trials(tables, seeds));
  return report_transfer(*boosting, tables);
}

}  // namespace

}  // namespace tilewright::autotune

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: report_replay FOLDER SEEDS [BASE_MODEL]\n");
    return 2;
  }
  const auto s = tilewright::autotune::run(
      argv[1], static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)), argc > 3 ? argv[3] : "");
  if (!s.ok()) std::fprintf(stderr, "%s\n", s.error().to_string().c_str());
  return s.ok() ? 0 : 1;
}
