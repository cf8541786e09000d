// What the process that calls candidates may take of the machine.
#pragma once

#include <cstdint>

namespace tilewright::autotune {

// Of processor time from here on, where nobody is left to end what hangs:
// whole seconds and a few more, for the tuner's own clock is to end it first.
void limit_time(double seconds);

// Of addresses, beside those that the process has.
void limit_memory(int64_t bytes);

// A fault ends the process as the system has it, not as a sanitizer does, and leaves no file; where
// memory is short this process goes first.
void end_plainly();

}  // namespace tilewright::autotune
