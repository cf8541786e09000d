// The seal that a compiled model ends with, behind the ELF file: it tells a file that was damaged,
// cut off or added to from the one that was written, before any of it is believed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// What stands at the end of a file; none where that is no seal.
std::optional<Seal> read_seal(std::span<const uint8_t> file);

// The seal that belongs behind `contents`. A label (such as the name under which a cache keeps the
// file) makes it another one. Large contents are read by several threads.
Seal make_seal(std::span<const uint8_t> contents, std::string_view label);

// Errors: invalid "damaged: ..." where a file that ends with `seal` is not what that says.
Status check_seal(std::span<const uint8_t> file, const Seal& seal, std::string_view label);

// Seals a file that has no seal. Errors: kIo.
Status append_seal(const std::string& path, std::string_view label);

}  // namespace tilewright
