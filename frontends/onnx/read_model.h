// An ONNX file -> checked OnnxModel. The file is untrusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "frontends/onnx/model.h"
#include "runtime/core/result.h"

namespace tilewright {

// The newest file format version that is understood; newer ones may change what fields mean.
inline constexpr int64_t kMaxIrVersion = 14;

// What the model is read for. Training asks what PyTorch's exporter says of initialisers (OnnxGraph::roles), and
// takes apart those that it merged (export_metadata.h).
enum class ModelUse : uint8_t { kInference, kTraining };

// Large constants are views into the mapped file, so that peak memory stays near its size. External
// data may lie only inside the model's own folder.
// Errors: kIo (a file cannot be read), kInvalid (not a model, or it breaks a rule of the format),
// kUnsupported (newer IR version, element types unknown here), kLimit (depth, number of nodes).
Result<std::unique_ptr<OnnxModel>> read_model(const std::filesystem::path& path,
                                              ModelUse use = ModelUse::kInference);

// The same from memory, which `owner` keeps alive. `folder` holds external data; empty: none
// allowed.
Result<std::unique_ptr<OnnxModel>> parse_model(std::span<const uint8_t> bytes,
                                               std::shared_ptr<const void> owner,
                                               const std::filesystem::path& folder,
                                               ModelUse use = ModelUse::kInference);

}  // namespace tilewright
