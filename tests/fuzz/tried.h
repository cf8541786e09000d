// What a fuzzer or a sweep is trying: whatever ends the process says it, so that it can be tried alone.
#pragma once

#include <string>

#include "runtime/core/result.h"

namespace tilewright {

// From here on signals are reported with `what`. One comes after so many seconds of CPU time, and after ten times as
// many in all; 0: no limit of time. Libraries may have put other handlers in their place in the meantime.
void begin_try(const std::string& what, unsigned seconds);

// Passes by an error of the user's kind, which a wrong input is to have. Ends the process for an internal error.
void judge(const Error& e);

}  // namespace tilewright
