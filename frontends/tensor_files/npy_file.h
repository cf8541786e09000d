// A file with one NumPy array (.npy). Untrusted, as archives of them are (npz.h).
#pragma once

#include <filesystem>

#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright {

// Row-major and little-endian, whatever the file has. Errors: kIo, kInvalid (damaged, of another length
// than its header says), kUnsupported (element type).
Result<HostTensor> read_npy(const std::filesystem::path& path);

}  // namespace tilewright
