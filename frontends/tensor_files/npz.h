// NumPy archives (.npz): a zip file of .npy arrays. Untrusted input: every length is checked
// against the bytes that are there before memory is reserved.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"
#include "runtime/core/write_file.h"

namespace tilewright {

inline constexpr uint64_t kMaxNpzBytes = uint64_t{8} << 30;  // all arrays of an archive together

// Every array, in the archive's order, under its entry name without ".npy". Entries may be stored
// or deflated (ZIP64 too); arrays come out little-endian and row-major, bools as 0 or 1. Errors:
// kIo (cannot open), kInvalid (damaged, duplicate names), kUnsupported (element type, compression),
// kLimit (more than kMaxNpzBytes).
Result<NamedTensors> read_npz(const std::filesystem::path& path);

// Stored entries with a fixed date, so equal tensors give equal files. At least one tensor,
// distinct names; bf16 is kUnsupported, since NumPy lacks it.
Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors,
                 Durability durability = Durability::kCached);

}  // namespace tilewright
