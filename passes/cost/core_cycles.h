// Cycles of flat loops in one core whose operands lie in its first cache: innermost loop by innermost
// loop, what its ports take or the latency of its sums, whichever is longer. The bounds are those of
// OSACA (Laukemann et al., 2018), with instructions counted in the loop IR and not in assembly.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/loops/simplify.h"
#include "ir/machine.h"

namespace tilewright::passes {

// Of the core with the largest share, where parallel loops go to machine.threads cores. Extents that
// nothing bounds count as kUnknownExtent.
double core_cycles(const ir::MachineDescription& machine, const ir::Stmt& flat_loops);

// The number of iterations of a loop inside loops of those ranges: the largest where it varies.
int64_t iterations(const ir::For& loop, const ir::Ranges& around);

}  // namespace tilewright::passes
