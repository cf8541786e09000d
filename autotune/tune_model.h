// Tuning inside the model, where what is measured is what a user gets: first what graph passes decide
// (tune_graph.h), then kernels (tune_kernels.h); in the end whole runs decide.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autotune/measure/comparison.h"
#include "autotune/tune_graph.h"
#include "autotune/tune_kernels.h"
#include "codegen/assemble_executable.h"
#include "ir/graph/graph.h"

namespace tilewright::autotune {

struct TuneProgress {
  // Rounds and candidates measured, kernels that have a better form by now, and the part of a run's
  // time that these save, by the kernels' own times: before the last runs, by those of the rounds.
  size_t rounds = 0, trials = 0, improved = 0, kernels = 0;
  double saved = 0;
  // The part of the kernels' time that other forms may save at most, with a confidence of 95 % for
  // each kernel, as far as they were weighed (Search::gap).
  double gap = 1;
  double seconds = 0, seconds_left = 0;
  double learning = 0;  // of the seconds: what fitting and asking the cost model took
};
struct TuneOptions {
  // When it ends: after so many seconds or candidates (0: as many as there are), when no kernel has
  // a candidate left, or when `stop` says so. What was found by then counts.
  double seconds = 240;
  size_t trials = 0;
  double gap = 0;  // kernels whose TunedKernel::gap is at most this are left as they are
  bool same_bits = false;
  uint32_t seed = 1;
  int threads = 1;  // of the sessions
  FindKnown known;  // null: none
  // Called with each form as it becomes the best one: who is ended before the last runs has that. An
  // error ends tuning. Null: no callback.
  OnFinding found;
  std::function<bool()> stop;
  std::function<void(const TuneProgress&)> progress;
  RunInTurn measure;  // null: by the clock
};

struct TuneResult {
  // What graph passes decide, and the graph's key. Kernels are those of that form.
  TunedGraph graph;
  std::string graph_task;
  // The slowest first.
  std::vector<TunedKernel> kernels;
  // Whole runs: all best forms together (b) against the usual graph and schedules (a).
  Comparison runs;
  TuneProgress progress;
  std::vector<TuneProgress> rounds;  // as it was after each
  // Candidates that were wrong alone, and rounds whose results were not those of the usual schedules,
  // of which no candidate was taken; and what the first of them was.
  size_t refused = 0;
  std::string refusal;
  std::string unlearned;  // why analytic costs alone said what to measure; empty: they did not
};

// `graph` is typed; `lower` says for which machine, threads and numerics, `assemble` likewise. `inputs`:
// at each size that counts, where extents of the graph are symbolic; a form is better if it is so over
// all sizes and worse at none. Forms that do not hold up in the last runs are given up; where whole runs
// are not faster, all are.
Result<TuneResult> tune_model(const ir::Graph& graph, const passes::LowerOptions& lower,
                              const codegen::AssembleOptions& assemble, InputSets inputs,
                              const TuneOptions& options);
// A kernel with blocks by itself, as plan_kernel has it.
Result<TuneResult> tune_kernel(ir::Kernel kernel, std::map<std::string, ir::ConstantRef> constants,
                               const passes::LowerOptions& lower,
                               const codegen::AssembleOptions& assemble, InputSets inputs,
                               const TuneOptions& options);

}  // namespace tilewright::autotune
