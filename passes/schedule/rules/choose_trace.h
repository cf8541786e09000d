// The schedule that a kernel gets: rules look at its blocks and the machine, decide, and write a
// trace. Nothing is scheduled here: apply_trace does what the trace says.
#pragma once

#include <set>
#include <string>

#include "ir/machine.h"
#include "passes/decisions/decision.h"
#include "passes/schedule/trace.h"

namespace tilewright::passes {

struct ScheduleInput {
  // Not null; outlives the call.
  const ir::MachineDescription* machine = nullptr;
  std::set<std::string>
      constants;  // parameters whose contents are known: their layout may be chosen
  // To decisions, by name; all others go as usual.
  Answers answers;
  bool rules = true;     // false: loops as they are, with nothing but what every kernel needs
  bool explain = false;  // notes also say what the forms that were not chosen would cost
};

// A schedule, and how it came about.
struct Choice {
  // The steps, in the order in which they were taken.
  Trace trace;
  std::vector<Decision> decisions;  // in the order in which they came up
  std::vector<std::string> notes;   // what rules have to say, for `lower --explain`
  std::vector<std::string> lost;    // steps that a rule wanted, did without, and why
};

// Errors: kInvalid when an answer is none of its decision's values, when a schedule with it is not
// legal, or when its decision never comes up; kInternal when the init of a reduction cannot be
// taken out of its loops.
Result<Choice> choose_trace(const ir::Kernel& kernel, const ScheduleInput& input);

}  // namespace tilewright::passes
