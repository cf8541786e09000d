// Passes over memory, to be timed: by vectors of the widest registers this CPU has, with ordinary
// loads and stores. Buffers are aligned to 64 bytes and hold a multiple of 512; each pass returns
// the bytes that the program read and wrote.
#pragma once

#include <cstddef>

namespace tilewright::measure {

double read_bytes(const char* from, size_t bytes);
double write_bytes(char* to, size_t bytes);
double copy_bytes(char* to, const char* from, size_t bytes);

}  // namespace tilewright::measure
