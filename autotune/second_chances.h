// Graph passes' answers are judged by kernels with usual schedules. One that was a little slower may be
// faster once its kernels are tuned as well, and so may what one that was taken replaced: the likeliest
// are given that chance.
#pragma once

#include <random>
#include <vector>

#include "autotune/tune_graph.h"
#include "autotune/tune_kernels.h"

namespace tilewright::autotune {

// Of what was tried on the way to `tuned`, the most promising first; few. run_us: of a run.
std::vector<GraphTrial> second_chances(const TunedGraph& tuned, double run_us);

// A form of the graph and its tuned kernels.
struct TunedForm {
  const GraphForm& graph;
  const KernelTuner& kernels;
};
// The trial as it comes out with tuned kernels. Errors: of the runs. measure: PairedOptions::measure.
Result<GraphTrial> try_again(GraphTrial trial, TunedForm best, TunedForm other, InputSets inputs,
                             std::mt19937& random, const RunInTurn& measure = nullptr);

}  // namespace tilewright::autotune
