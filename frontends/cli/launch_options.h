// The options of `tilewright launch`, behind which a whole command line follows.
#pragma once

#include <CLI/CLI.hpp>

#include "frontends/cli/cli.h"

namespace tilewright::cli {

// Adds the subcommand; parsing fills the arguments, but for the command.
void add_launch(CLI::App& app, LaunchArguments& arguments);
// The arguments with the command that stands behind the options: a subcommand of `app`, with this program's name before
// it or without, or another program. Errors: kInvalid for an option that there is not.
Result<LaunchArguments> with_command(const CLI::App& app, LaunchArguments arguments);

}  // namespace tilewright::cli
