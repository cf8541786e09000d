// A pass over the protobuf wire format (https://protobuf.dev/programming-guides/encoding/): a
// message is a sequence of tags (field number and wire type) with their contents, so that messages
// can be copied without being parsed. All lengths come from the file and are checked against the
// end of the message around.
#include "frontends/onnx/strip_payloads.h"

#include <cstring>

namespace tilewright {
namespace {

// The messages of onnx.proto that hold tensors, directly or inside of others.
enum class Message { kModel, kGraph, kNode, kAttribute, kFunction, kTensor, kSparseTensor };
enum class Action { kCopy, kDescend, kRawData, kTypedData, kMetadata };
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct FieldRule {
  Message message;
  uint32_t field;
  Action action = Action::kCopy;
  Message child = Message::kModel;  // of kDescend
};

// Every field that onnx.proto and tensor.proto know; others are dropped. Messages that can hold no
// tensor are copied whole.
constexpr FieldRule kRules[] = {
    {Message::kModel, 1},
    {Message::kModel, 2},
    {Message::kModel, 3},
    {Message::kModel, 7, Action::kDescend, Message::kGraph},
    {Message::kModel, 8},
    {Message::kModel, 25, Action::kDescend, Message::kFunction},
    {Message::kGraph, 1, Action::kDescend, Message::kNode},
    {Message::kGraph, 2},
    {Message::kGraph, 5, Action::kDescend, Message::kTensor},
    {Message::kGraph, 11},
    {Message::kGraph, 12},
    {Message::kGraph, 13},
    {Message::kGraph, 15, Action::kDescend, Message::kSparseTensor},
    {Message::kGraph, 16, Action::kMetadata},
    {Message::kNode, 1},
    {Message::kNode, 2},
    {Message::kNode, 3},
    {Message::kNode, 4},
    {Message::kNode, 5, Action::kDescend, Message::kAttribute},
    {Message::kNode, 7},
    {Message::kNode, 8},
    {Message::kNode, 9, Action::kMetadata},
    {Message::kAttribute, 1},
    {Message::kAttribute, 2},
    {Message::kAttribute, 3},
    {Message::kAttribute, 4},
    {Message::kAttribute, 5, Action::kDescend, Message::kTensor},
    {Message::kAttribute, 6, Action::kDescend, Message::kGraph},
    {Message::kAttribute, 7},
    {Message::kAttribute, 8},
    {Message::kAttribute, 9},
    {Message::kAttribute, 10, Action::kDescend, Message::kTensor},
    {Message::kAttribute, 11, Action::kDescend, Message::kGraph},
    {Message::kAttribute, 14},
    {Message::kAttribute, 15},
    {Message::kAttribute, 20},
    {Message::kAttribute, 21},
    {Message::kAttribute, 22, Action::kDescend, Message::kSparseTensor},
    {Message::kAttribute, 23, Action::kDescend, Message::kSparseTensor},
    {Message::kFunction, 1},
    {Message::kFunction, 4},
    {Message::kFunction, 5},
    {Message::kFunction, 6},
    {Message::kFunction, 7, Action::kDescend, Message::kNode},
    {Message::kFunction, 9},
    {Message::kFunction, 10},
    {Message::kFunction, 11, Action::kDescend, Message::kAttribute},
    {Message::kFunction, 13},
    {Message::kTensor, 1},
    {Message::kTensor, 2},
    {Message::kTensor, 4, Action::kTypedData},
    {Message::kTensor, 5, Action::kTypedData},
    {Message::kTensor, 6, Action::kTypedData},
    {Message::kTensor, 7, Action::kTypedData},
    {Message::kTensor, 8},
    {Message::kTensor, 9, Action::kRawData},
    {Message::kTensor, 10, Action::kTypedData},
    {Message::kTensor, 11, Action::kTypedData},
    {Message::kTensor, 13},
    {Message::kTensor, 14},
    {Message::kSparseTensor, 1, Action::kDescend, Message::kTensor},
    {Message::kSparseTensor, 2, Action::kDescend, Message::kTensor},
    {Message::kSparseTensor, 3},
};

const FieldRule* find_rule(Message message, uint32_t field) {
  for (const FieldRule& r : kRules)
    if (r.message == message && r.field == field) return &r;
  return nullptr;
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_varint(out, field << 3 | kLength);
  append_varint(out, bytes.size());
  out += bytes;
}

struct Field {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  size_t start = 0;  // of the tag
  size_t value = 0;  // of the contents, after tag and length
  size_t end = 0;
};

class Stripper {
 public:
  Stripper(std::span<const uint8_t> model, bool keeps_metadata)
      : model_(model), keeps_metadata_(keeps_metadata) {}

  // Appends the stripped form of the message that stands in [begin, end).
  Status strip(Message message, size_t begin, size_t end, int depth, std::string& out) {
    if (message == Message::kGraph && depth > kMaxGraphDepth)
      return limit_error("graphs nested more than " + std::to_string(kMaxGraphDepth) + " deep");
    std::optional<Payload> payload;
    for (size_t at = begin; at < end;) {
      auto field = read_field(at, end);
      if (!field)
        return invalid("not a protobuf message, or truncated, at byte " + std::to_string(at));
      at = field->end;
      TW_RETURN_IF_ERROR(strip_field(message, *field, depth, payload, out));
    }
    if (!payload) return {};
    // Typed data are decoded from the message itself, of which `out` lacks them.
    if (payload->kind == Payload::Kind::kMessage) *payload = {payload->kind, begin, end - begin};
    std::string text(sizeof(Payload), '\0');
    std::memcpy(text.data(), &*payload, sizeof(Payload));
    append_bytes(out, 9, text);
    return {};
  }

 private:
  Status strip_field(Message message, const Field& field, int depth,
                     std::optional<Payload>& payload, std::string& out) {
    const FieldRule* rule = find_rule(message, field.number);
    if (!rule) return {};
    TW_RETURN_IF_ERROR(count(message, *rule, field));
    switch (rule->action) {
      case Action::kMetadata:
        if (!keeps_metadata_) return {};
        [[fallthrough]];
      case Action::kCopy:
        structure_bytes_ += field.end - field.start;
        if (structure_bytes_ > kMaxStructureBytes)
          return limit_error("more than " + std::to_string(kMaxStructureBytes) +
                             " bytes besides the data of tensors");
        out.append(reinterpret_cast<const char*>(model_.data()) + field.start,
                   field.end - field.start);
        return {};
      case Action::kDescend: {
        if (field.wire_type != kLength) return {};
        std::string child;
        int child_depth = depth + (rule->child == Message::kGraph);
        TW_RETURN_IF_ERROR(strip(rule->child, field.value, field.end, child_depth, child));
        append_bytes(out, field.number, child);
        return {};
      }
      case Action::kRawData:
        if (field.wire_type == kLength)
          payload = {Payload::Kind::kRaw, field.value, field.end - field.value};
        return {};
      case Action::kTypedData:
        if (!payload) payload = {Payload::Kind::kMessage};
        return {};
    }
    return internal_error("wire action");
  }

  // Small messages and strings weigh far more in memory than in the file.
  Status count(Message message, const FieldRule& rule, const Field& field) {
    bool is_node = rule.action == Action::kDescend && rule.child == Message::kNode;
    if (is_node && ++nodes_ > kMaxNodes)
      return limit_error("more than " + std::to_string(kMaxNodes) + " nodes");
    if (message == Message::kTensor || field.wire_type != kLength) return {};
    if (++messages_ > kMaxMessages)
      return limit_error("more than " + std::to_string(kMaxMessages) + " messages");
    return {};
  }

  // Base 128, low bits first; at most ten bytes. Bits beyond 64 are lost, as protobuf does.
  std::optional<uint64_t> read_varint(size_t& at, size_t end) const {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && at < end; shift += 7) {
      uint8_t byte = model_[at++];
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  // The field whose tag begins at `at`; nothing when it does not end before `end`.
  std::optional<Field> read_field(size_t at, size_t end) const {
    Field field;
    field.start = at;
    auto tag = read_varint(at, end);
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return std::nullopt;
    field.number = static_cast<uint32_t>(*tag >> 3);
    field.wire_type = *tag & 7;
    uint64_t length = 0;
    if (field.wire_type == kVarint) {
      if (!read_varint(at, end)) return std::nullopt;
    } else if (field.wire_type == kLength) {
      auto read = read_varint(at, end);
      if (!read) return std::nullopt;
      length = *read;
    } else if (field.wire_type == kFixed64) {
      length = 8;
    } else if (field.wire_type == kFixed32) {
      length = 4;
    } else {
      return std::nullopt;  // groups: no version of the format has any
    }
    if (length > end - at) return std::nullopt;
    field.value = at;
    field.end = at + length;
    return field;
  }

  std::span<const uint8_t> model_;
  const bool keeps_metadata_;
  size_t nodes_ = 0;
  size_t messages_ = 0;
  size_t structure_bytes_ = 0;
};

}  // namespace

Result<std::string> strip_payloads(std::span<const uint8_t> model, bool keeps_metadata) {
  std::string out;
  TW_RETURN_IF_ERROR(
      Stripper(model, keeps_metadata).strip(Message::kModel, 0, model.size(), 0, out));
  return out;
}

std::optional<Payload> decode_payload(std::string_view text, size_t file_bytes) {
  Payload payload;
  if (text.size() != sizeof(Payload)) return std::nullopt;
  std::memcpy(static_cast<void*>(&payload), text.data(), sizeof(Payload));
  if (payload.kind != Payload::Kind::kRaw && payload.kind != Payload::Kind::kMessage)
    return std::nullopt;
  if (payload.offset > file_bytes || payload.length > file_bytes - payload.offset)
    return std::nullopt;
  return payload;
}

}  // namespace tilewright
