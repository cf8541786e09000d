#include "frontends/tensor_files/tensor_pb.h"

#include <google/protobuf/io/coded_stream.h>

#include <climits>

#include "frontends/tensor_files/mapped_file.h"
#include "frontends/tensor_files/tensor_elements.h"
#include "runtime/core/write_file.h"

namespace tilewright {
namespace {

using onnx_format::OptionalProto;
using onnx_format::SequenceProto;
using onnx_format::TensorProto;

// Both directions below recurse over nested values; protobuf bounds the depth (100 messages) when
// it parses, and kMaxNesting bounds it when values are written.
constexpr int kMaxNesting = 32;

Result<HostValue> decode(const SequenceProto& proto);
Result<HostValue> decode(const OptionalProto& proto);

Result<HostValue> decode(const TensorProto& proto) {
  TW_ASSIGN(HostTensor tensor, decode_host_tensor(proto));
  return HostValue(std::move(tensor));
}

template <typename Field>
Status append_all(const Field& field, HostSequence& values) {
  for (const auto& proto : field) {
    TW_ASSIGN(HostValue value, decode(proto));
    values.push_back(std::move(value));
  }
  return {};
}

Result<HostValue> decode(const SequenceProto& proto) {
  HostSequence values;
  if (proto.elem_type() == onnx_format::SPARSE_TENSOR || proto.elem_type() == onnx_format::MAP)
    return unsupported("sequences of maps and of sparse tensors are not supported");
  TW_RETURN_IF_ERROR(append_all(proto.tensor_values(), values));
  TW_RETURN_IF_ERROR(append_all(proto.sequence_values(), values));
  TW_RETURN_IF_ERROR(append_all(proto.optional_values(), values));
  return HostValue(std::move(values));
}

Result<HostValue> decode(const OptionalProto& proto) {
  if (proto.elem_type() == onnx_format::SPARSE_TENSOR || proto.elem_type() == onnx_format::MAP)
    return unsupported("optional maps and sparse tensors are not supported");
  if (proto.has_tensor_value()) return decode(proto.tensor_value());
  if (proto.has_sequence_value()) return decode(proto.sequence_value());
  if (proto.has_optional_value()) return decode(proto.optional_value());
  return HostValue(HostNone{});
}

Status encode(const HostValue& value, int depth, OptionalProto& proto);

Status encode(const HostValue& value, int depth, SequenceProto& proto) {
  if (depth > kMaxNesting) return limit_error("sequences nested more than 32 deep");
  const HostSequence* values = value.sequence();
  if (!values) return invalid("a sequence is expected, the value is none");
  proto.set_elem_type(onnx_format::TENSOR);
  for (const HostValue& v : *values) {
    if (v.is_none()) return unsupported("a sequence that holds an absent optional");
    if (const HostTensor* tensor = v.tensor()) {
      encode_host_tensor(*tensor, *proto.add_tensor_values());
    } else {
      proto.set_elem_type(onnx_format::SEQUENCE);
      TW_RETURN_IF_ERROR(encode(v, depth + 1, *proto.add_sequence_values()));
    }
  }
  if (proto.tensor_values_size() && proto.sequence_values_size())
    return invalid("a sequence holds both tensors and sequences");
  return {};
}

Status encode(const HostValue& value, int depth, OptionalProto& proto) {
  if (value.is_none()) return {};
  if (const HostTensor* tensor = value.tensor()) {
    proto.set_elem_type(onnx_format::TENSOR);
    encode_host_tensor(*tensor, *proto.mutable_tensor_value());
    return {};
  }
  proto.set_elem_type(onnx_format::SEQUENCE);
  return encode(value, depth + 1, *proto.mutable_sequence_value());
}

template <typename Proto>
Result<HostValue> parse_value(std::span<const uint8_t> bytes) {
  Proto proto;
  if (bytes.size() > INT_MAX) return limit_error("messages of 2 GiB and more are not read");
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid("not a protobuf message, or truncated");
  return decode(proto);
}

Result<HostValue> parse_kind(std::span<const uint8_t> bytes, PbKind kind) {
  switch (kind) {
    case PbKind::kTensor: return parse_value<TensorProto>(bytes);
    case PbKind::kSequence: return parse_value<SequenceProto>(bytes);
    case PbKind::kOptional: return parse_value<OptionalProto>(bytes);
  }
  return internal_error("kind of value");
}

template <typename Proto>
Status write_proto(const std::filesystem::path& path, const std::string& name, Proto& proto) {
  proto.set_name(name);
  // protobuf counts in int, and its own check would only log.
  if (proto.ByteSizeLong() > INT_MAX) return limit_error("the value exceeds 2 GiB", path.string());
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) return internal_error("the value cannot be serialised");
  return write_file(path.string(), bytes);
}

std::filesystem::path numbered(const std::filesystem::path& folder, const std::string& stem,
                               size_t i) {
  return folder / (stem + "_" + std::to_string(i) + ".pb");
}

}  // namespace

Result<HostValue> read_pb(const std::filesystem::path& path, PbKind kind) {
  TW_ASSIGN(auto file, MappedFile::open(path));
  auto value = parse_kind(file->bytes(), kind);
  if (!value) value.error().location = path.string();
  return value;
}

Status write_pb(const std::filesystem::path& path, const std::string& name, const HostValue& value,
                PbKind kind) {
  if (kind == PbKind::kTensor) {
    const HostTensor* tensor = value.tensor();
    if (!tensor) return invalid("'" + name + "' is not a tensor", path.string());
    TensorProto proto;
    encode_host_tensor(*tensor, proto);
    return write_proto(path, name, proto);
  }
  if (kind == PbKind::kSequence) {
    if (!value.sequence()) return invalid("'" + name + "' is not a sequence", path.string());
    SequenceProto proto;
    TW_RETURN_IF_ERROR(encode(value, 0, proto));
    return write_proto(path, name, proto);
  }
  OptionalProto proto;
  TW_RETURN_IF_ERROR(encode(value, 0, proto));
  return write_proto(path, name, proto);
}

Result<NamedValues> read_pb_folder(const std::filesystem::path& folder, const std::string& stem,
                                   const std::vector<PbSlot>& slots) {
  NamedValues values;
  for (size_t i = 0; i < slots.size(); ++i) {
    TW_ASSIGN(HostValue value, read_pb(numbered(folder, stem, i), slots[i].kind));
    values.emplace_back(slots[i].name, std::move(value));
  }
  return values;
}

Status write_pb_folder(const std::filesystem::path& folder, const std::string& stem,
                       const std::vector<PbSlot>& slots, const std::vector<HostValue>& values) {
  if (slots.size() != values.size())
    return invalid(
        std::to_string(values.size()) + " values, expected " + std::to_string(slots.size()),
        folder.string());
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return io_error("cannot make the folder: " + code.message(), folder.string());
  for (size_t i = 0; i < slots.size(); ++i)
    TW_RETURN_IF_ERROR(
        write_pb(numbered(folder, stem, i), slots[i].name, values[i], slots[i].kind));
  return {};
}

}  // namespace tilewright
