// Names temporary files. A writer fills one and renames it over its target, so that readers never see a partial file.
#pragma once

#include <cstdio>
#include <filesystem>
#include <random>

namespace tilewright::train {

inline constexpr const char* kPartialSuffix = ".partial";

// Appends kPartialSuffix and random digits, so that concurrent writers of one target use different files.
inline std::filesystem::path partial_beside(std::filesystem::path path) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "-%08x", std::random_device()());
  path += kPartialSuffix;
  return path += digits;
}

}  // namespace tilewright::train
