// Prints what each way of choosing needs on the kept measurements: trials until 70 % of the gap from
// the usual form to the best one is closed. usage: compare_policies FOLDER [SEEDS]
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/autotune/replay/replay_search.h"

int main(int argc, char** argv) {
  using namespace tilewright::autotune;
  const auto tables = read_tables(argv[1]);
  const auto boosting = open_boosting();
  const unsigned seeds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 20;
  const Policy policies[] = {Policy::kLearned, Policy::kAnalytic, Policy::kTrees, Policy::kRandom};
  double logs[4] = {};
  size_t held = 0, stated = 0, pairs = 0, wins[4] = {}, losses[4] = {};
  std::printf("%-18s %6s %6s", "task", "forms", "gap");
  for (const Policy p : policies) std::printf(" %9s", name(p));
  std::puts("");
  for (const ReplayTable& t : *tables) {
    double mean[4] = {}, gap = 0;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      double trials[4];
      for (int p = 0; p < 4; ++p) {
        auto run = replay(t, {.policy = policies[p],
                              .boosting = *boosting,
                              .base = nullptr,
                              .seed = seed,
                              .most = 200});
        trials[p] = static_cast<double>(run->trials_to_close(0.7, 200));
        mean[p] += std::log(trials[p]) / seeds;
        logs[p] += std::log(trials[p]);
        if (p == 0) gap += run->usual_gap / seeds;
        if (p == 0)
          for (const auto& x : run->trials)
            if (x.stated_gap < 0.05) {
              ++stated;
              held += x.true_gap <= 0.05;
              break;
            }
      }
      ++pairs;
      for (int p = 1; p < 4; ++p) wins[p] += trials[0]<trials[p], losses[p] += trials[0]> trials[p];
    }
    std::printf("%-18s %6zu %5.1f%%", t.name.c_str(), t.forms.size(), 100 * gap);
    for (double m : mean) std::printf(" %9.1f", std::exp(m));
    std::puts("");
    std::fflush(stdout);
  }
  std::printf("%-18s %6s %6s", "geometric mean", "", "");
  for (double l : logs) std::printf(" %9.1f", std::exp(l / static_cast<double>(pairs)));
  std::printf(
      "\n5%% gaps stated %zu of %zu, held %zu; wins/losses against analytic %zu/%zu trees %zu/%zu "
      "random %zu/%zu\n",
      stated, pairs, held, wins[1], losses[1], wins[2], losses[2], wins[3], losses[3]);
}
