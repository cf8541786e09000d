// Half precision on CPUs without instructions to convert it: by integer arithmetic, so that no code
// needs a compiler's support library.
#pragma once

#include "ir/machine.h"
#include "runtime/core/dtype.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// Whether values of this type are converted by the functions below.
bool emulates_halves(const ir::MachineDescription& machine, DType type);

// A scalar or vector of f16 or bf16 as f32, exactly.
llvm::Value* widen_half(llvm::IRBuilderBase& b, llvm::Value* value, DType from);
// A scalar or vector of f32 as f16 or bf16, rounded to the nearest, halves to even; NaN stays NaN.
llvm::Value* narrow_half(llvm::IRBuilderBase& b, llvm::Value* value, DType to);

}  // namespace tilewright::cpu
