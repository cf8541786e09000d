#include "frontends/tensor_files/tensor_elements.h"

#include <bit>
#include <cstring>

#include "frontends/tensor_files/convert_layout.h"

namespace tilewright {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are stored");

template <typename To, typename Field>
Result<AlignedBytes> copy_field(const Field& field, const TensorLayout& layout) {
  size_t entries = layout.bytes / sizeof(To);
  if (static_cast<size_t>(field.size()) != entries)
    return invalid(std::to_string(field.size()) + " elements of data, shape " +
                   to_string(layout.shape) + " of " + std::string(layout.type.name) + " needs " +
                   std::to_string(entries));
  AlignedBytes bytes(layout.bytes);
  To* to = reinterpret_cast<To*>(bytes.data());
  for (auto value : field) *to++ = static_cast<To>(value);
  return bytes;
}

}  // namespace

Result<TensorLayout> tensor_layout(const onnx_format::TensorProto& proto) {
  auto type = onnx_element_type(proto.data_type());
  if (proto.data_type() == 0) return invalid("tensor without an element type");
  if (!type)
    return unsupported("element type " + onnx_element_name(proto.data_type()) +
                       " is not supported");
  TensorLayout layout{*type, Shape(proto.dims().begin(), proto.dims().end())};
  auto count = element_count(layout.shape);
  size_t bits = 0;
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), type->bits, &bits))
    return invalid("shape " + to_string(layout.shape) + " is negative or too large");
  layout.count = *count;
  layout.bytes = bits / 8 + (bits % 8 != 0);
  return layout;
}

Error wrong_data_size(const TensorLayout& layout, size_t bytes_found) {
  return invalid(std::to_string(bytes_found) + " bytes of data, shape " + to_string(layout.shape) +
                 " of " + std::string(layout.type.name) + " needs " + std::to_string(layout.bytes));
}

Result<AlignedBytes> decode_typed_data(const onnx_format::TensorProto& proto,
                                       const TensorLayout& layout) {
  int bits = layout.type.bits;
  switch (layout.type.field) {
    case TypedField::kFloat: return copy_field<float>(proto.float_data(), layout);
    case TypedField::kDouble: return copy_field<double>(proto.double_data(), layout);
    case TypedField::kInt64: return copy_field<int64_t>(proto.int64_data(), layout);
    case TypedField::kUInt64:
      return bits == 32 ? copy_field<uint32_t>(proto.uint64_data(), layout)
                        : copy_field<uint64_t>(proto.uint64_data(), layout);
    case TypedField::kInt32:
      if (bits == 32) return copy_field<int32_t>(proto.int32_data(), layout);
      if (bits == 16) return copy_field<uint16_t>(proto.int32_data(), layout);
      return copy_field<uint8_t>(proto.int32_data(), layout);  // below 8 bits: a packed byte each
    case TypedField::kString: break;
  }
  return internal_error("strings have no bytes");
}

Result<HostTensor> decode_host_tensor(const onnx_format::TensorProto& proto) {
  TW_ASSIGN(TensorLayout layout, tensor_layout(proto));
  auto dtype = dtype_from_onnx(layout.type.code);
  if (!dtype)
    return unsupported("tensors of " + std::string(layout.type.name) + " cannot be read here");
  if (proto.data_location() == onnx_format::TensorProto::EXTERNAL)
    return unsupported("a tensor file with external data");
  HostTensor tensor;
  tensor.dtype = *dtype;
  tensor.shape = layout.shape;
  if (proto.has_raw_data()) {
    const std::string& raw = proto.raw_data();
    if (raw.size() != layout.bytes) return wrong_data_size(layout, raw.size());
    tensor.bytes.assign(raw.begin(), raw.end());
  } else {
    TW_ASSIGN(tensor.bytes, decode_typed_data(proto, layout));
  }
  normalize_bools(tensor);
  return tensor;
}

void encode_host_tensor(const HostTensor& tensor, onnx_format::TensorProto& proto) {
  proto.set_data_type(info(tensor.dtype).onnx_code);
  for (int64_t d : tensor.shape) proto.add_dims(d);
  proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
}

}  // namespace tilewright
