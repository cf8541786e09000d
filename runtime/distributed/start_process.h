// One process: fork, exec and what lies between.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/descriptor.h"
#include "runtime/core/result.h"

namespace tilewright::distributed {

struct ProcessSpec {
  std::vector<std::string> command;  // a program, by path or looked up in PATH, and its arguments
  std::string name;                  // argv[0]; empty: as the command has it
  std::map<std::string, std::string> environment;  // beside, or instead of, what this process has
};

struct StartedProcess {
  pid_t id = 0;
  Descriptor out, error;  // what it writes there can be read here; reading does not block
};

// Starts a process that leads a process group of its own, reads /dev/null, has the given mask of signals and every
// signal's default action, and is killed when the thread that calls this ends. It inherits no descriptor but these
// three and what was opened here without the flag O_CLOEXEC. Errors: kIo, also for a program that cannot be executed.
Result<StartedProcess> start_process(const ProcessSpec& spec, const sigset_t& mask);

}  // namespace tilewright::distributed
