// Kernels of several phases: one fork-join for all of them.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::cpu {

// A body (flat loops) in which several parallel loops run one after the other, such that each
// worker of a team can walk through all of it (TwKernelContext::team): what stands beside the
// parallel loops becomes parallel loops of one iteration. Null for a body with fewer than two
// phases, and where the way through it depends on memory that the kernel writes.
ir::Stmt as_phases(const ir::Stmt& body);

}  // namespace tilewright::cpu
