// A job's step as files to ship: what `tilewright train` runs, for a program that keeps the state itself.
#pragma once

#include <filesystem>

#include "frontends/compiler/compiler.h"
#include "frontends/train/job.h"

namespace tilewright::train {

// Beside a step at `path`, "step.so": "step-start.so", "step-update.so" where the job has steps in parts, and
// "step-state.json".
std::filesystem::path start_of(const std::filesystem::path& path);
std::filesystem::path update_of(const std::filesystem::path& path);
std::filesystem::path state_of(const std::filesystem::path& path);

// Writes compiled models: the step or, of a job with parts, a part and the update (inputs and outputs as in
// step_graph.h); and one without inputs whose outputs have the names and types of the states that are the
// model's, and what these hold before the first step; all other states are 0 then. And, as JSON, what lies where
// in the flat buffers: {state: {dtype, elements, tensors: [{name, shape, offset}]}}, offsets and elements of f32.
// Errors: those of the model and the job; no data is read.
Status compile_step(const Job& job, const CompileOptions& options,
                    const std::filesystem::path& path);

}  // namespace tilewright::train
