// Flat loops to LLVM IR: one function per kernel, following runtime/kernel_abi.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace llvm {
class Module;
class LLVMContext;
}  // namespace llvm

namespace tilewright::cpu {

// Bytes of workspace a kernel asks the session for, over its scalars.
struct KernelWorkspace {
  ir::Expr call, worker;  // null: none
};

// Adds the function `kernel.name` (void(context, buffers, scalars)) and its parallel bodies to the
// module.
Result<KernelWorkspace> emit_kernel(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                                    llvm::Module& module);

}  // namespace tilewright::cpu
