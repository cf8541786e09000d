// XXH3, 128 bits: the same value on every machine. It finds damage; it keeps nobody out.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace tilewright {

struct Hash128 {
  uint64_t low, high;
};

// Computes the hash with the widest vector instructions of the CPU that it runs on; the result is the same on all.
Hash128 hash_bytes(const void* data, size_t bytes);

// The forms of it, by the instructions that they need. The second is there on x86-64 alone.
Hash128 hash_bytes_baseline(const void* data, size_t bytes);
Hash128 hash_bytes_avx2(const void* data, size_t bytes);

}  // namespace tilewright
