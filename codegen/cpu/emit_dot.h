// The 8-bit dot product (Dot) to LLVM IR.
#pragma once

#include "ir/machine.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// sum: <n x i32>, a: <4n x i8> unsigned, b: <4n x i8> signed. One instruction per register where
// the machine has one (VNNI); elsewhere products of 16-bit pairs, which are exact as well.
llvm::Value* emit_dot(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                      llvm::Value* sum, llvm::Value* a, llvm::Value* b_operand);

}  // namespace tilewright::cpu
