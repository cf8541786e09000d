// The pipeline from a typed graph to the program of flat kernels.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "ir/graph/graph.h"
#include "ir/machine.h"
#include "ir/program/program.h"
#include "passes/decisions/decision.h"
#include "passes/graph/graph_passes.h"
#include "passes/pipeline.h"
#include "passes/plan_program.h"
#include "passes/schedule/trace.h"
#include "runtime/core/numerics.h"

namespace tilewright::passes {

// A schedule from elsewhere, and the answers to the rules' decisions that it follows from, where known.
struct FoundSchedule {
  FoundSchedule(Trace found = {}, Answers of = {})
      : schedule(std::move(found)), answers(std::move(of)) {}
  Trace schedule;
  Answers answers;
};
// A kernel, and which of its parameters are known at compile time.
using FindSchedule = std::function<std::optional<FoundSchedule>(
    const ir::Kernel&, const std::set<std::string>& constants)>;

// Answers that are known to be good for a typed graph's decisions; empty: none are.
using FindAnswers = std::function<Answers(const ir::Graph&)>;

struct LowerOptions {
  // For which machine; passes that fold run constants on the host.
  ir::MachineDescription machine;
  RunConstants run_constants;                // computes a graph of constants
  bool fuse = true;                          // false: one kernel per node (for tests)
  bool schedule = true;                      // false: plain loops (for tests)
  bool fold = true;                          // false: constants stay nodes (for tests)
  Numerics numerics = Numerics::kStandard;   // passes that change more do not run
  bool inside = false;                       // the graph is a region of another: it may never run
  bool verify = true;                        // after each pass; false: for what is only weighed
  int threads = 1;                           // that lower kernels at once; no influence on them
  int64_t free_fold_bytes = kFreeFoldBytes;  // see fold_constants
  std::function<void(size_t)> on_kernel;     // told how many kernels are lowered; by any thread
  FindSchedule find_schedule;  // asked before the rules choose; null, or nothing: they do
  // Of results, started while the program runs; empty: none are.
  std::vector<ResultRange> starts;
  // Asked where `decisions` is null; answers that a graph does not have are passed over, all of them.
  FindAnswers find_answers;
  // Of graph passes: answers that they follow, and what they decided. Null: all goes as usual.
  Decisions* decisions = nullptr;
};

// The passes, in order: over the graph; over what is planned for it and each region inside; over a
// kernel with blocks; from there to flat loops; over the program.
std::span<const GraphPass> graph_passes();
std::span<const PlanPass> plan_passes();
std::span<const KernelPass> schedule_passes();
std::span<const KernelPass> loop_passes();
std::span<const ProgramPass> program_passes();

// The graph passes alone: what `lower` makes kernels of.
Result<ir::Graph> lower_graph(ir::Graph graph, const LowerOptions& options);
// One kernel with blocks, through schedule and loop passes, to flat loops.
struct ScheduledKernel {
  ir::Kernel kernel;
  Trace trace;  // the whole schedule: what apply_trace did
};
Result<ScheduledKernel> schedule_kernel(ir::Kernel kernel, const std::set<std::string>& constants,
                                        const LowerOptions& options);
Result<ir::Kernel> lower_to_flat(ir::Kernel kernel, const LowerOptions& options);
Result<ir::Program> lower(ir::Graph graph, const LowerOptions& options);
// What is left of it once the graph passes are done.
Result<ir::Program> lower_fused(const ir::Graph& graph, const LowerOptions& options);
// With kernels that somebody else lowers, or lowered before: to the same as lower_kernel does. On
// `threads` as plan_program() says.
Result<ir::Program> lower_fused(const ir::Graph& graph, const LowerOptions& options,
                                const LowerKernel& lower_one, int threads = 1);
Result<LoweredKernel> lower_kernel(ir::Kernel kernel, const std::set<std::string>& constants,
                                   const LowerOptions& options);

}  // namespace tilewright::passes
