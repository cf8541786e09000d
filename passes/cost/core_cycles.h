// Cycles of flat loops in one core whose operands lie in its first cache: innermost loop by innermost
// loop, what its ports take or the latency of its sums, whichever is longer. The bounds are those of
// OSACA (Laukemann et al., 2018), with instructions counted in the loop IR and not in assembly.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace tilewright::passes {

// Of the core with the largest share, where parallel loops go to machine.threads cores. Extents that
// nothing bounds count as kUnknownExtent.
double core_cycles(const ir::MachineDescription& machine, const ir::Stmt& flat_loops);

}  // namespace tilewright::passes
