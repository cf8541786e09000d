// Sets up standard output and standard error for every command, and reports their errors.
#pragma once

#include <string>

namespace tilewright::cli {

// Before anything is printed. From then on whatever is printed is printable (runtime/core/printable.h), through
// std::cout, std::cerr, stdout or stderr: names of a model reach no terminal as they are.
void set_up_standard_streams();

// Puts sequences that control a terminal on standard error.
void control_terminal(const std::string& sequence);

// The exit status: `status`, or, where what was printed could not be written, kError with a message.
int finish_standard_output(int status);

}  // namespace tilewright::cli
