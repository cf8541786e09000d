// Tuning a model: what is faster than the usual schedules goes into a database.
#pragma once

#include "autotune/tune_model.h"
#include "frontends/compiler/compiler.h"

namespace tilewright {

// Starts from the schedules that options.database has already, and writes a record for each kernel
// that got a better one. `inputs`: in the model's order. Errors: those of compilation and runs, and
// kIo where the database cannot be written, which is tried first.
Result<autotune::TuneResult> tune(const OnnxModel& model, const Binding& binding,
                                  std::span<const Tensor> inputs, const CompileOptions& options,
                                  const autotune::TuneOptions& tuning);

}  // namespace tilewright
