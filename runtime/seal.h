// The seal that a compiled model ends with, behind the ELF file: it tells a file that was damaged, cut off or
// added to from the one that was written, before any of it is believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace tilewright {

// The last 32 bytes of a file, little-endian.
struct Seal {
  char mark[8];
  uint64_t bytes;        // of what stands before it
  uint64_t checksum[2];  // of these bytes, their number, and a label that is not in the file
  bool operator==(const Seal&) const = default;
};

// What stands at the end of a file of `size` bytes; none where that is no seal.
Result<std::optional<Seal>> read_seal(int descriptor, uint64_t size);

// The seal of the first `bytes` bytes of an open file. A label (such as the name under which a cache keeps
// the file) makes it another one. Large files are read by several threads. Errors: kIo.
Result<Seal> make_seal(int descriptor, uint64_t bytes, std::string_view label);

// Errors: invalid "damaged: ..." where a file of `size` bytes is not what `seal`, its own, says.
Status check_seal(int descriptor, uint64_t size, const Seal& seal, std::string_view label);

// Seals a file that has no seal. Errors: kIo.
Status append_seal(const std::string& path, std::string_view label);

// Exactly `bytes` bytes from `offset` on; false where the file has fewer or cannot be read.
bool read_exactly(int descriptor, uint64_t offset, void* data, size_t bytes);

}  // namespace tilewright
