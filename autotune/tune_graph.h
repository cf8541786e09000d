// Tuning of what graph passes decide: algorithms, layouts, padding, attention's blocks. Nodes that a
// model repeats are answered alike, and answers whose kernels have nothing in common are tried in one
// compiled model; what each gains is read off the kernels that it changes.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "autotune/graph_form.h"
#include "autotune/measure/comparison.h"
#include "autotune/measure/paired_runs.h"
#include "autotune/model_compiler.h"
#include "autotune/tuned_kernel.h"

namespace tilewright::autotune {

struct GraphTuneOptions {
  bool same_bits = false;  // only answers that keep every bit of the results
  Known from;              // to start from; answers that nobody asks for are left out
  FindKnown known;         // of kernels; null: none
  std::function<bool()> stop;
  std::function<void(size_t trials)> progress;
  RunInTurn measure;  // null: by the clock
};

// An answer that was tried on all decisions that are alike.
struct GraphTrial {
  std::string alike, answer;        // Decision::alike, and the value's label
  passes::Answers answers, before;  // of each decision, and the best form's own
  Comparison measured;  // of the kernels that it changes: itself (b) against the best form then (a)
  bool tuned = false;   // its kernels were (second_chances.h), else they had usual schedules
  bool confirmed = false;  // it became part of the best form
  std::string refused;     // why it was not compared; empty: it was
};

struct TunedGraph {
  GraphForm form;  // the usual one where none was faster
  // Of the kernels that are not the usual ones, together, in the last, confirming runs: usual (a)
  // against tuned (b).
  Comparison gain;
  std::vector<GraphTrial> trials;
  bool recorded = false;  // it began with a form that was confirmed before
  bool improved() const { return !form.answers.empty(); }
};

// `graph` is typed. Each form is compiled with usual schedules, but for what is known of its kernels.
Result<TunedGraph> tune_graph(const ir::Graph& graph, const ModelCompiler& compiler,
                              InputSets inputs, const GraphTuneOptions& options,
                              std::mt19937& random);

}  // namespace tilewright::autotune
