// LLVM's code generator: a module in, an object file or assembly out.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/result.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tilewright::cpu {

enum class FileType { kObject, kAssembly };

// The module's code for `target`, of which nothing is optimised but what code generation does by
// itself. LLVM 22.1 drops masks that are read as an integer and then changed; such are kept here.
// Errors: kInternal when LLVM has no code generator for the target.
Result<std::vector<uint8_t>> emit_object(llvm::Module& module, llvm::TargetMachine& target,
                                         FileType type);

}  // namespace tilewright::cpu
