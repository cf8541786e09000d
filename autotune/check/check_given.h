// A kernel that somebody wrote: it may read and write anywhere, or never end.
#pragma once

#include <span>

#include "codegen/assemble_executable.h"
#include "ir/program/program.h"
#include "runtime/tensor.h"

namespace tilewright::autotune {

// Calls the kernel of a program of one call (passes/plan_kernel.h) alone, as check_alone does, on these
// inputs; what it computes is not looked at. Errors: kInvalid for one that check_alone refuses, kLimit
// for operands of over 1 GiB, and those of check_alone.
Status check_given(const ir::Program& program, std::span<const Tensor> inputs,
                   const codegen::AssembleOptions& assemble);

}  // namespace tilewright::autotune
