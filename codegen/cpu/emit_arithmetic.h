// Arithmetic nodes to LLVM IR: each takes the node and the values of its operands. Written once per
// meaning of nodes.h.
#pragma once

#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace tilewright::cpu {

// Is the kernel exact (Kernel::exact)? Else floats may be contracted.
bool is_exact(const llvm::IRBuilderBase& b);

// bool is i1 in registers and i8 in memory.
llvm::Type* llvm_type(llvm::IRBuilderBase& b, ir::ScalarType type, bool in_memory = false);

// Operands are scalars or vectors, the result has the node's type. Casts from floats to integers
// saturate, NaN gives 0; f16 and bf16 are computed in f32 where the machine cannot convert them.
llvm::Value* emit_cast(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                       const ir::Cast& e, llvm::Value* value);
llvm::Value* emit_unary(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                        const ir::Unary& e, llvm::Value* value);
llvm::Value* emit_binary(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                         const ir::Binary& e, llvm::Value* x, llvm::Value* y);
// The same for operands that are integers or bools (emit_integers.cpp).
llvm::Value* emit_integers(llvm::IRBuilderBase& b, const ir::Binary& e, llvm::Value* x,
                           llvm::Value* y);
// Lanes are folded together by halves: a fixed order whatever the target.
llvm::Value* emit_reduce_lanes(llvm::IRBuilderBase& b, const ir::MachineDescription& machine,
                               const ir::ReduceLanes& e, llvm::Value* value);
// Integers of which number i holds lane i of every part, the first part lowest.
llvm::Value* emit_joined(llvm::IRBuilderBase& b, const std::vector<llvm::Value*>& parts);
// Lane 0 of every part, then lane 1 of every part, ...
llvm::Value* emit_interleaved(llvm::IRBuilderBase& b, const std::vector<llvm::Value*>& parts);
// Lanes first, first + n, first + 2n, ...
llvm::Value* emit_every(llvm::IRBuilderBase& b, llvm::Value* v, int first, int n);
// Each lane n times.
llvm::Value* each_repeated(llvm::IRBuilderBase& b, llvm::Value* v, int n);

}  // namespace tilewright::cpu
