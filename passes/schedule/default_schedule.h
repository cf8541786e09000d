// The schedule a kernel gets without tuning: rules look at its blocks and the machine and write a
// trace.
#pragma once

#include <set>
#include <string>

#include "ir/machine.h"
#include "passes/schedule/trace.h"

namespace tilewright::passes {

struct ScheduleInput {
  const ir::MachineDescription* machine = nullptr;
  std::set<std::string>
      constants;  // parameters whose contents are known: their layout may be chosen
  std::vector<std::string>* notes = nullptr;  // gets what rules have to say; null: nobody asks
};

// Never fails: steps that do not apply are left out. `kernel` becomes the scheduled one.
Trace default_schedule(ir::Kernel& kernel, const ScheduleInput& input);

// Inits of reductions that no rule has taken out become nests before their loops.
Result<ir::Kernel> hoist_inits(ir::Kernel kernel);

}  // namespace tilewright::passes
