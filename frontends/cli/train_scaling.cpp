// tilewright train --scaling
#include <algorithm>
#include <iostream>

#include "autotune/report/page.h"
#include "frontends/cli/train_bench.h"
#include "frontends/train/scaling.h"
#include "runtime/core/write_file.h"
#include "runtime/thread_pool.h"

namespace tilewright::cli {

namespace {

constexpr int kWarmTimelines = 2, kLeastTimelines = 5, kMostTimelines = 1000;

// Measures several steps and returns the timeline of the median one.
Result<train::StepTimeline> median_timeline(train::Trainer& trainer, double seconds) {
  std::vector<train::StepTimeline> all;
  const int64_t start = now_nanoseconds();
  for (int k = 0; k < kWarmTimelines + kMostTimelines; ++k) {
    if (k >= kWarmTimelines + kLeastTimelines &&
        static_cast<double>(now_nanoseconds() - start) > seconds * 1e9)
      break;
    TW_ASSIGN(train::StepTimeline t, trainer.timeline());
    if (k >= kWarmTimelines) all.push_back(std::move(t));
  }
  std::ranges::sort(all, {}, &train::StepTimeline::ended);
  return all[all.size() / 2];
}

}  // namespace

Status predict_scaling(train::Trainer& trainer, const train::Job& job, const TrainArguments& a) {
  const train::Ranks& ranks = trainer.ranks();
  TW_RETURN_IF_ERROR(ranks.group()->connect(-1, nullptr));
  distributed::RingCost cost;
  if (!a.link.empty()) {
    TW_ASSIGN(cost, train::read_link(a.link));
  } else if (ranks.size() > 1) {
    TW_ASSIGN(cost, distributed::measure_ring(*ranks.comm()));
  } else {
    return invalid(
        "--scaling has no link to measure in a single process: give --link, as 50us,1gbit, or "
        "start "
        "ranks (tilewright launch, mpirun)");
  }
  // All of them at once, as ranks of one machine share its memory.
  const auto timeline = median_timeline(trainer, a.seconds);
  TW_RETURN_IF_ERROR(
      ranks.agree(timeline.ok() ? Status() : timeline.error(), "the measurement of a step"));
  if (!ranks.is_first()) return {};
  std::vector<int> counts = a.scaling;
  counts.push_back(1);
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  std::vector<train::Scaled> rows;
  for (const int n : counts)
    rows.push_back(train::scale(*timeline, cost, n, trainer.samples_of_rank(),
                                trainer.threads() >= available_cpus()));
  std::printf("a step of the ring takes %.1f us and %.3f ns a byte\n%s", cost.latency * 1e6,
              cost.per_byte * 1e9, to_table(rows).c_str());
  return a.page.empty() ? Status() : write_file(a.page, scaling_page(job, cost, rows));
}

}  // namespace tilewright::cli
