// What this process did not get of its CPUs: its threads waited for another's, or the machine below a
// virtual one took them.
#pragma once

#include <cstdint>

namespace tilewright::autotune {

// Nanoseconds so far, of all threads together, that they were ready and did not run (Linux,
// /proc/self/task/*/schedstat), and that were stolen from any CPU (/proc/stat). 0 where the system
// does not say.
int64_t lost_nanoseconds();

}  // namespace tilewright::autotune
