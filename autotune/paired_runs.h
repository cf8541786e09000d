// Two compiled forms of a model, run in turn: what each kernel takes inside the model, with its real
// operands and whatever the kernels before left in the caches.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "autotune/comparison.h"
#include "runtime/session.h"

namespace tilewright::autotune {

// Microseconds of run after run: of the whole run, and of all calls of each kernel for each group of the
// model's nodes.
struct RunTimes {
  struct Row {
    std::string nodes, kernel;  // as in Profiler::Row
    std::vector<double> us;
  };
  std::vector<double> runs;
  std::vector<Row> rows;
};
struct PairedTimes {
  RunTimes a, b;
  Comparison runs() const { return compare(a.runs, b.runs); }
  // Of all calls of a kernel, by its name.
  Comparison kernel(const std::string& name) const;
  // Of all kernels of these nodes: what a graph's other form changes.
  Comparison nodes(const std::set<std::string>& of_a, const std::set<std::string>& of_b) const;
};
struct PairedOptions {
  // Pairs are run for about so long, and so many at least and at most.
  double seconds = 0.5;
  size_t least = 8, most = 64;
  std::function<bool()> stop;  // asked between pairs; null: never
};

// Which of the two goes first is drawn for each pair. Each is run once before it is timed, so that
// caches hold its own data and not the other's. Errors: those of the runs, and kInvalid when results
// of the first runs differ by more than reordered sums do.
Result<PairedTimes> run_in_turn(Session& a, Session& b, std::span<const Tensor> inputs,
                                const PairedOptions& options, std::mt19937& random);

}  // namespace tilewright::autotune
