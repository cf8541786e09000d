// Tensor data in files beside the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontends/tensor_files/mapped_file.h"
#include "runtime/core/result.h"

namespace tilewright {

// What a tensor says of its external data. Untrusted until ExternalData has mapped it.
struct ExternalRange {
  std::string location;            // relative to the model's folder, '/' between names
  uint64_t offset = 0;             // bytes
  std::optional<uint64_t> length;  // nothing: to the end of the file
};

// The bytes that an ExternalRange stands for.
struct MappedRange {
  // What the range covers; valid as long as `file` is held.
  std::span<const uint8_t> bytes;
  // The mapping, shared by all ranges of one file.
  std::shared_ptr<const MappedFile> file;
};

// Maps each file once. A model must not be able to make others' files readable: absolute locations,
// "..", and links that lead outside the folder are refused.
class ExternalData {
 public:
  // An empty folder: the model may have no external data.
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Result<MappedRange> map(const ExternalRange& range);
  // All files that were mapped, by their paths.
  const std::map<std::filesystem::path, std::shared_ptr<const MappedFile>>& files() const {
    return files_;
  }

 private:
  Result<std::filesystem::path> resolve(const std::string& location) const;
  std::filesystem::path folder_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace tilewright
