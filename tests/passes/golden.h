// Files of cases: a kernel, steps to take and the kernel that comes out, or the error. In a file
//
//   === name of the case
//   kernel ...
//   --- steps
//   split(i i0 i1; 4)
//   --- result
//   kernel ...
//
// where the result may also be `error: phrase`, part of the message. With the environment variable
// TILEWRIGHT_UPDATE_GOLDEN=1 the results that are kernels are written anew.
#pragma once

#include <functional>
#include <string>

#include "ir/loops/nodes.h"
#include "ir/verify_loops.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// What a case's steps do to its kernel: passes, primitives or rules, by the test.
using ApplySteps =
    std::function<Result<ir::Kernel>(const ir::Kernel& kernel, const std::string& steps)>;

// What all cases of one file have in common.
struct GoldenRules {
  ir::Stage before, after;   // what the kernels obey
  bool needs_error = false;  // at least one case is an error
};
// Runs all cases of tests/passes/<name>.ir: texts are equal, and both kernels compute the same.
void check_golden(const std::string& name, const GoldenRules& rules, const ApplySteps& apply);

}  // namespace tilewright::passes
