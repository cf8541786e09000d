// No access of a parameter lies outside of it: by proof, under a requirement of the run, or by a guard.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/analysis/open_accesses.h"

namespace tilewright::passes {

// The kernel's body, in blocks, and what its accesses require beside `known`; `who` names them in errors. An access
// whose extremes have no bound over the kernel's scalars, or that a condition may leave out, is guarded: where its
// index is outside a load gives 0 and a store does nothing.
struct ClosedKernel {
  ir::Stmt body;
  std::vector<ir::Requirement> requirements;
  size_t guards = 0;  // accesses with one
};
ClosedKernel close_accesses(const ir::Kernel& kernel, const std::vector<CheckedElements>& checked,
                            const std::vector<ir::Requirement>& known,
                            const std::function<std::string(const OpenAccess&)>& who);

}  // namespace tilewright::passes
