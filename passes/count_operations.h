// What a profile says of a kernel.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::passes {

// Arithmetic operations of all block instances, over the kernel's scalars; a fused multiply-add counts
// twice.
ir::Expr count_flops(const ir::Kernel& kernel);

}  // namespace tilewright::passes
