// A form of a kernel before it is measured: its schedule, what that is expected to cost, and what a
// model can learn from.
#pragma once

#include <set>
#include <string>

#include "autotune/learn/features.h"
#include "passes/decisions/decision.h"
#include "passes/lower.h"
#include "passes/schedule/trace.h"

namespace tilewright::autotune {

struct PricedForm {
  // What follows from the answers, in the order in which it follows.
  passes::Trace schedule;
  passes::LoopCost cost;
  Features features;
};
// Milliseconds each. The schedule alone, and the rest of the form. Errors: of the rules, and of the
// passes to flat loops.
Result<passes::Trace> schedule_of(const ir::Kernel& kernel, const std::set<std::string>& constants,
                                  const passes::LowerOptions& options,
                                  const passes::Answers& answers);
Result<PricedForm> price(const ir::Kernel& kernel, passes::Trace schedule,
                         const passes::LowerOptions& options);

}  // namespace tilewright::autotune
