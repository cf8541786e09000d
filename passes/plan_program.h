// From a fused graph and its kernels to the program: buffers, views, instruction order, lifetimes.
#pragma once

#include <functional>

#include "ir/program/program.h"
#include "passes/build_loops.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// Takes a kernel with blocks to flat loops.
using LowerKernel = std::function<Result<ir::Kernel>(ir::Kernel)>;

Result<ir::Program> plan_program(const ir::Graph& graph, const LowerKernel& lower_kernel);

}  // namespace tilewright::passes
