// Tuning inside the model: each round compiles the model with a new candidate for every kernel that
// has one left, and runs it in turn with the best form so far. So one run times a candidate of every
// kernel, and what is measured is what a user gets.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autotune/comparison.h"
#include "autotune/search.h"
#include "codegen/assemble_executable.h"
#include "ir/graph/graph.h"
#include "runtime/tensor.h"

namespace tilewright::autotune {

struct TuneProgress {
  // Rounds and candidates measured, kernels that have a better form by now, and the part of a run's
  // time that these save, by the kernels' own times.
  size_t rounds = 0, trials = 0, improved = 0, kernels = 0;
  double saved = 0;
  double seconds = 0, seconds_left = 0;
};
struct TuneOptions {
  // When it ends: after so many seconds or candidates (0: as many as there are), when no kernel has
  // a candidate left, or when `stop` says so. What was found by then counts.
  double seconds = 240;
  size_t trials = 0;
  bool same_bits = false;
  uint32_t seed = 1;
  int threads = 1;  // of the sessions
  // Answers that are known to be good for a task, to start from; null: none.
  std::function<passes::Answers(const std::string& task)> known;
  std::function<bool()> stop;
  std::function<void(const TuneProgress&)> progress;
};

// A kernel of the model, all of its calls together.
struct TunedKernel {
  std::string name, task;  // "k4_conv_add", and task_key
  double us = 0;           // in a run with the usual schedules
  size_t trials = 0;
  // Its best form, and how that compares with the usual one (a) in the last, confirming runs.
  Candidate best;
  bool improved = false;
  Comparison gain;
};
struct TuneResult {
  // The slowest first.
  std::vector<TunedKernel> kernels;
  // Whole runs: all best forms together (b) against the usual schedules (a).
  Comparison runs;
  TuneProgress progress;
  // Rounds whose results were not those of the usual schedules, or that failed, and why the first
  // one did: none of their candidates was taken.
  size_t refused = 0;
  std::string refusal;
};

// `graph` is typed; `lower` says for which machine, threads and numerics, `assemble` likewise. Forms
// that do not hold up in the last runs are given up; where whole runs are not faster, all are.
Result<TuneResult> tune_model(const ir::Graph& graph, const passes::LowerOptions& lower,
                              const codegen::AssembleOptions& assemble,
                              std::span<const Tensor> inputs, const TuneOptions& options);

}  // namespace tilewright::autotune
