// Names of files that are written beside another one and then replace it, so that readers see one of the two, whole.
#pragma once

#include <cstdio>
#include <filesystem>
#include <random>

namespace tilewright::train {

inline constexpr const char* kPartialSuffix = ".partial";

// path + kPartialSuffix + random digits: two processes that write the same file do not meet in a partial one.
inline std::filesystem::path partial_beside(std::filesystem::path path) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "-%08x", std::random_device()());
  path += kPartialSuffix;
  return path += digits;
}

}  // namespace tilewright::train
