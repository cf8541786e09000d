// The readers of files from outside, each with files that it takes, for fuzzers to begin with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

using Bytes = std::vector<uint8_t>;

struct Reader {
  // "database": as commands and folders name it.
  std::string_view name;
  // Reads the bytes and what follows from them. An internal error ends the process.
  void (*read)(std::span<const uint8_t> bytes);
  // Returns valid files, one at least of each form that the reader accepts.
  std::vector<Bytes> (*seeds)();
};

std::span<const Reader> readers();

}  // namespace tilewright
