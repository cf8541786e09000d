// Passes over memory, to be timed: by vectors of the widest registers this CPU has, with ordinary
// loads and non-temporal stores. Each pass returns the bytes that the program read and wrote.
#pragma once

#include <cstddef>

namespace tilewright::measure {

// Buffers are aligned to 64 bytes and hold a multiple of 512; copies do not overlap.
double read_bytes(const char* from, size_t bytes);
double write_bytes(char* to, size_t bytes);
double copy_bytes(char* to, const char* from, size_t bytes);

}  // namespace tilewright::measure
