// From a fused graph and its kernels to the program: buffers, views, instructions.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "passes/build_loops.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

struct LoweredKernel {
  ir::Kernel kernel;     // flat loops
  std::string schedule;  // the trace that led to it, as text
};
// Takes a kernel with blocks, exact where LowerOptions::numerics says so, to flat loops.
// `constants`: names of the parameters whose contents are known; their layout may be chosen.
// Called once for each kernel of the program.
using LowerKernel =
    std::function<Result<LoweredKernel>(ir::Kernel, const std::set<std::string>& constants)>;

struct LowerOptions;

// Runs plan_passes() over the graph and each region inside, and writes what they found as a program
// without lifetimes. `threads` call `lower_kernel` at once, which must then bear it; one calls it in
// the order of the kernels' numbers. The program is the same.
Result<ir::Program> plan_program(const ir::Graph& graph, const LowerOptions& options,
                                 const LowerKernel& lower_kernel, int threads = 1);

// Starts these ranges of results (ir::StartInstruction), each as early as may be, and numbers them in that order.
// Errors: no output or updated input has the name.
struct ResultRange {
  std::string result;
  int64_t begin = 0, end = 0;  // bytes
};
Result<ir::Program> start_ranges(ir::Program program, const std::vector<ResultRange>& ranges);

// First and last use of every buffer, as instructions of the main block.
ir::Program set_lifetimes(ir::Program program);

}  // namespace tilewright::passes
