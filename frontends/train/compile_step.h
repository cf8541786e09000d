// A job's step as files to ship: what `tilewright train` runs, for a program that keeps the state itself.
#pragma once

#include <filesystem>

#include "frontends/compiler/compiler.h"
#include "frontends/train/job.h"

namespace tilewright::train {

// Where the states of a step at `path` are as they begin: "step.so" has "step-start.so" beside it.
std::filesystem::path start_of(const std::filesystem::path& path);

// Writes two compiled models: the step (inputs and outputs as in step_graph.h), and one without inputs
// whose outputs have the names and types of the states that are the model's, and what these hold before
// the first step; all other states are 0 then. Errors: those of the model and the job; no data is read.
Status compile_step(const Job& job, const CompileOptions& options,
                    const std::filesystem::path& path);

}  // namespace tilewright::train
