// A whole file, mapped read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/core/result.h"

namespace tilewright {

// Shared by all views into the file, the last of which unmaps it.
class MappedFile {
 public:
  // Regular files only (runtime/core/open_file.h). The pages stay valid while the object lives; a
  // file that another process truncates meanwhile raises SIGBUS, as with any mapping.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Page-aligned; empty for an empty file.
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

}  // namespace tilewright
