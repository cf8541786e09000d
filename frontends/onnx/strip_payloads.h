// A copy of a serialised model in which the data of tensors are replaced by where they stand, so
// that protobuf parses the structure of a large model without copying its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace tilewright {

inline constexpr int kMaxGraphDepth = 64;           // graphs inside attributes of graphs
inline constexpr size_t kMaxNodes = 1'000'000;      // in all graphs and functions
inline constexpr size_t kMaxMessages = 10'000'000;  // messages and strings of every other kind
inline constexpr size_t kMaxStructureBytes = size_t{256} << 20;  // all but the data of tensors

// Where the data of a tensor stand in the file.
struct Payload {
  // Raw bytes, or typed fields that the whole message is parsed for.
  enum class Kind : uint64_t { kRaw = 1, kMessage = 2 };
  Kind kind = Kind::kRaw;  // kRaw: the bytes of raw_data; kMessage: the whole TensorProto
  // In bytes from the begin of the file.
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The result is a ModelProto with only the fields that onnx.proto knows. In each TensorProto the
// field raw_data, where present, is an encoded Payload, and typed data fields are left out.
// With `keeps_metadata`, metadata of the graph and its nodes are kept; they may be as large as the rest of
// the structure. Errors: kInvalid (not
// protobuf, truncated), kLimit (depth, number of nodes or messages, bytes of
// structure).
Result<std::string> strip_payloads(std::span<const uint8_t> model, bool keeps_metadata = false);

// Nothing when the text is no Payload or points outside a file of this size.
std::optional<Payload> decode_payload(std::string_view text, size_t file_bytes);

}  // namespace tilewright
