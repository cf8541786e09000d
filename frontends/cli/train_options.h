// Groups of options of `tilewright train`.
#pragma once

#include <CLI/CLI.hpp>

#include "frontends/cli/cli.h"

namespace tilewright::cli {

// Ranks that are threads; what is predicted of other numbers of ranks; how steps are timed.
void add_ranks(CLI::App* command, TrainArguments& arguments);
void add_scaling(CLI::App* command, TrainArguments& arguments);
void add_step_times(CLI::App* command, TrainArguments& arguments);

}  // namespace tilewright::cli
