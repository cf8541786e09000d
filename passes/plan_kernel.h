// A kernel by itself as a program: what tuning and running one needs.
#pragma once

#include <map>
#include <string>

#include "passes/plan_program.h"

namespace tilewright::passes {

// The parameters that the kernel does not write, in their order.
std::vector<ir::Buffer> inputs_of(const ir::Kernel& kernel);
// A program of one call. Parameters with a constant hold it; others are inputs, and those that it writes
// are outputs, in their order, under their names. `kernel` has blocks. Errors: of
// lowering, and kInvalid for a parameter that is read and written, or an extent that no input has.
Result<ir::Program> plan_kernel(ir::Kernel kernel,
                                const std::map<std::string, ir::ConstantRef>& constants,
                                const LowerOptions& options, const LowerKernel& lower_kernel);

}  // namespace tilewright::passes
