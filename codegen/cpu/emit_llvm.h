// Flat loops to LLVM IR: one function per kernel, following runtime/kernel_abi.h.
#pragma once

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace tilewright::cpu {

// Adds the function `kernel.name` (void(context, buffers, scalars)) and its parallel bodies to the
// module. The kernel's loops are planned (verify_loops.h).
Status emit_kernel(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                   llvm::Module& module);

}  // namespace tilewright::cpu
