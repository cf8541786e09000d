// The kernels whose candidates are measured and kept: one for each way in which rules schedule.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "passes/lower.h"
#include "tests/performance/kernel_graph.h"

namespace tilewright::autotune {

struct ReplayTask {
  // "conv_1x1"; which of the rules makes its schedule, so that one can be left out of learning.
  std::string name, rule;
  std::string cpu;  // as CompileOptions has it
  int threads = 1;
  std::function<void(performance::KernelGraph&)> build;
};
const std::vector<ReplayTask>& replay_tasks();

// A task's graph, after the graph passes, and its kernel with blocks: the one that costs most, of
// those with a node of KernelGraph::timed where that is set.
struct ReplayKernel {
  performance::KernelGraph source;
  passes::LowerOptions lower;
  ir::Graph graph;
  ir::Kernel kernel;
  std::set<std::string> constants;
};
// For this machine, with its measured speeds. Errors: of the passes.
Result<ReplayKernel> kernel_of(const ReplayTask& task);

}  // namespace tilewright::autotune
