// Runs models whose operands and temporaries lie between pages that may not be touched.
#pragma once

#include <random>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "runtime/core/host_tensor.h"

namespace tilewright {

// What was given to a run and what came of it. No outputs: the model was refused by the compiler or at the run, or
// wants operands that are too large to try.
struct GuardedRun {
  NamedTensors inputs, outputs;
};

// Extents of symbols are drawn below 6, elements of integers below and beyond what they may index. Errors are judged
// (tried.h).
GuardedRun run_guarded(const OnnxModel& model, const CompileOptions& options,
                       std::mt19937_64& random);

}  // namespace tilewright
