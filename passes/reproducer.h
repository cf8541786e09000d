// A file with what a pass was given when it failed, and what is needed to run it again: the text of
// the graph, kernel or program, the machine, the options, the passes that were to come.
#pragma once

#include <span>
#include <string>

#include "passes/lower.h"
#include "passes/pipeline.h"

namespace tilewright::passes {

// The path of the file written: in TILEWRIGHT_DUMP's folder, else in the temporary one. A folder keeps the last 32.
Result<std::string> write_reproducer(const ir::Graph& graph, std::span<const GraphPass> remaining,
                                     const LowerOptions& options, const Error& error);
Result<std::string> write_reproducer(const ir::Kernel& kernel,
                                     std::span<const KernelPass> remaining,
                                     const KernelContext& context, const Error& error);

// The same of plans (the graph replays them) and of programs.
Result<std::string> write_reproducer(const ir::Graph& graph, std::span<const PlanPass> remaining,
                                     const LowerOptions& options, const Error& error);
Result<std::string> write_reproducer(const ir::Program& program,
                                     std::span<const ProgramPass> remaining,
                                     const LowerOptions& options, const Error& error);

// Runs the passes of the file again. The error is theirs, or says why the file cannot be replayed
// (kIo, kInvalid). Constants that the text leaves out are zeros.
Status replay(const std::string& path, const RunConstants& run_constants);

}  // namespace tilewright::passes
