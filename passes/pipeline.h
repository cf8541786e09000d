// Running passes: each is timed, its result verified and, when the environment variable
// TILEWRIGHT_DUMP names a folder, written there as text. A failure inside Tilewright leaves a file
// that `tilewright reproduce` replays (reproducer.h).
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/nodes.h"
#include "ir/program/program.h"
#include "ir/verify_loops.h"
#include "passes/schedule/trace.h"
#include "runtime/core/numerics.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

struct LowerOptions;
struct GraphPlan;

// What a pass over a kernel may know besides the kernel.
struct KernelContext {
  // Of the whole compilation; outlives the context.
  const LowerOptions& options;
  std::set<std::string> constants;  // parameters whose contents are known at compile time
  Trace* trace = nullptr;           // the schedule: choose_trace writes it, apply_trace follows it
};

// What a pass may change of the values that a model computes; nothing else changes any, but for
// code generation, which rounds a product and the sum that takes it at once (not at `exact`).
enum class Change : uint8_t {
  kNothing,      // every bit stays
  kIntegerSums,  // sums of products of dequantised operands are those of the integers: exact
  kSumOrder,     // at `exact` by shapes and the width of vectors alone
  kRounding,     // as many roundings, in other places
  kAlgorithm,    // fewer operations, whose error is within a stated multiple
  kPrecision,    // narrower arithmetic
};
// The lowest level at which it may.
constexpr Numerics level_of(Change change) {
  return change <= Change::kSumOrder    ? Numerics::kExact
         : change <= Change::kAlgorithm ? Numerics::kStandard
                                        : Numerics::kRelaxed;
}

// A row of the list of graph passes (lower.cpp).
struct GraphPass {
  // As dumps, times and errors call it; `run` may assume a verified graph and must give one.
  std::string_view name;
  Change change;
  Result<ir::Graph> (*run)(ir::Graph, const LowerOptions&);
};
// A row of the lists of schedule and loop passes.
struct KernelPass {
  // The same of kernels.
  std::string_view name;
  Change change;
  ir::Stage after;  // the rules that its result obeys
  Result<ir::Kernel> (*run)(ir::Kernel, const KernelContext&);
};

// A pass over what is found out about a graph before its program is written (planner.h). A plan
// follows from its graph, so that the graph is what replays a failure.
struct PlanPass {
  // As above; `run` fills in what the plan lacks.
  std::string_view name;
  bool ordered;  // steps stand in their order after it
  void (*run)(GraphPlan&);
};
// A row of the list of program passes.
struct ProgramPass {
  // The same of programs.
  std::string_view name;
  Change change;
  Result<ir::Program> (*run)(ir::Program, const LowerOptions&);
};

// Runs the passes in order, without those that change more than the options' numerics allow. An
// error of kind kInternal names the pass, and its notes the file that replays it.
Result<ir::Graph> run_pipeline(std::span<const GraphPass> passes, ir::Graph graph,
                               const LowerOptions& options);
Result<ir::Kernel> run_pipeline(std::span<const KernelPass> passes, ir::Kernel kernel,
                                const KernelContext& context);
Result<ir::Program> run_pipeline(std::span<const ProgramPass> passes, ir::Program program,
                                 const LowerOptions& options);
Status run_pipeline(std::span<const PlanPass> passes, GraphPlan& plan, const LowerOptions& options);

// What each pass took of this process, in the order of first use. A pass that runs passes itself
// (on the bodies of control flow) counts theirs as its own too.
struct PassTime {
  // Of the pass, and how often it ran.
  std::string name;
  int64_t calls = 0;
  double seconds = 0;         // without verification
  double verify_seconds = 0;  // of its results
};
std::vector<PassTime> pass_times();

// The pass's own function from a statement to a statement, as a pass over kernels.
template <auto transform>
Result<ir::Kernel> on_body(ir::Kernel kernel, const KernelContext&) {
  kernel.body = transform(kernel.body);
  return kernel;
}
// The pass's own function from a kernel to a kernel.
template <auto transform>
Result<ir::Kernel> on_kernel(ir::Kernel kernel, const KernelContext&) {
  return transform(std::move(kernel));
}

}  // namespace tilewright::passes
