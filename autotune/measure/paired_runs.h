// Two compiled forms of a model, run in turn: what each kernel takes inside the model, with its real
// operands and whatever the kernels before left in the caches. A model whose extents only the run knows
// is run at several sizes.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "autotune/measure/comparison.h"
#include "runtime/session.h"

namespace tilewright::autotune {

// Microseconds of run after run: of the whole run, and of all calls of each kernel for each group of the
// model's nodes.
struct RunTimes {
  struct Row {
    std::string nodes, kernel;                // as in Profiler::Row
    int64_t calls = 0, flops = 0, bytes = 0;  // of one run
    std::vector<double> us;
  };
  std::vector<double> runs;
  std::vector<Row> rows;
};
struct PairedTimes {
  struct OfSize {
    RunTimes a, b;
  };
  std::vector<OfSize> sizes;
  Comparison runs() const;
  // Of all calls of these kernels together, by name; also pair by pair.
  Comparison kernels(const std::set<std::string>& names) const;
  Comparison kernel(const std::string& name) const { return kernels({name}); }
  std::vector<PairedSums::OfSize> pairs(const std::set<std::string>& kernels) const;
  // Of all kernels of these nodes: what a graph's other form changes.
  Comparison nodes(const std::set<std::string>& of_a, const std::set<std::string>& of_b) const;
};
// A model's inputs, at each size.
using InputSets = std::span<const std::vector<Tensor>>;
struct PairedOptions;
// What run_in_turn does, done by another: tests make up times that no clock decides.
using RunInTurn = std::function<Result<PairedTimes>(
    Session& a, Session& b, InputSets inputs, const PairedOptions& options, std::mt19937& random)>;
struct PairedOptions {
  // Pairs are run for about so long, and so many at least and at most, at each size.
  double seconds = 0.5;
  size_t least = 8, most = 64;
  std::function<bool()> stop;  // asked between pairs; null: never
  RunInTurn measure;           // null: run_in_turn itself, by the clock
};

// They take turns; who goes first is drawn. In a turn a form is run some times before it is timed, so that
// caches hold what they hold where it runs alone. Pairs that lost time to others (lost_time.h) are run
// again, for about as long once more; where few are left, all count. Errors: those of the runs, and
// kInvalid when results of the first runs differ by more than reordered sums do.
Result<PairedTimes> run_in_turn(Session& a, Session& b, InputSets inputs,
                                const PairedOptions& options, std::mt19937& random);

}  // namespace tilewright::autotune
