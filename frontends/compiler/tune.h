// Tuning a model: what is faster than the usual schedules goes into a database.
#pragma once

#include "autotune/tune_model.h"
#include "frontends/compiler/compiler.h"
#include "frontends/compiler/text_model.h"

namespace tilewright {

// Starts from what options.database has already. A form that becomes the best one is written at once, as
// provisional; what holds up in the last runs, as confirmed; a confirmed one that does not, as withdrawn.
// `inputs`: in the model's order, at each size that counts where extents stay symbolic. Errors: those of
// compilation and runs, and kIo where the database cannot be written, which is tried first.
Result<autotune::TuneResult> tune(const OnnxModel& model, const Binding& binding,
                                  autotune::InputSets inputs, const CompileOptions& options,
                                  const autotune::TuneOptions& tuning);
// The same of a graph that was built in C++, which is typed, or of a text's graph or kernel.
Result<autotune::TuneResult> tune(const ir::Graph& graph, autotune::InputSets inputs,
                                  const CompileOptions& options,
                                  const autotune::TuneOptions& tuning);
Result<autotune::TuneResult> tune(const TextModel& model, autotune::InputSets inputs,
                                  const CompileOptions& options,
                                  const autotune::TuneOptions& tuning);

}  // namespace tilewright
