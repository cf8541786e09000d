// What decisions cost, by what comes of them: each value is tried, and the loops that follow from it
// are priced (cost/loop_cost.h). For `lower --explain`, and wherever no rule has a cost of its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "passes/cost/loop_cost.h"
#include "passes/decisions/decision.h"
#include "passes/lower.h"

namespace tilewright::passes {

// Of a kernel with blocks, scheduled as the answers say.
Result<LoopCost> cost_of(const ir::Kernel& kernel, const std::set<std::string>& constants,
                         const LowerOptions& options, const Answers& answers = {});

// Fills Decision::microseconds where it is empty; NaN for a value that cannot be had, as no legal
// schedule or graph follows from it. All other decisions go as usual.
//
// Of the decisions that choose_trace made for a kernel with blocks.
void price_decisions(std::vector<Decision>& decisions, const ir::Kernel& kernel,
                     const std::set<std::string>& constants, const LowerOptions& options);
// Of those that the graph passes made: all kernels of a run together, but for those that are there
// whatever the value. Tells options.on_kernel how many kernels were priced.
void price_decisions(std::vector<Decision>& decisions, const ir::Graph& graph,
                     const LowerOptions& options);

}  // namespace tilewright::passes
