#include "frontends/onnx/decode_tensor.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>

#include "frontends/onnx/strip_payloads.h"
#include "frontends/tensor_files/element_type.h"
#include "frontends/tensor_files/tensor_elements.h"

namespace tilewright {
namespace {

using onnx_format::SparseTensorProto;
using onnx_format::TensorProto;

// The view of bytes that were decoded; it owns them.
void set_owned(TensorView& view, AlignedBytes bytes) {
  auto owner = std::make_shared<AlignedBytes>(std::move(bytes));
  view.data = owner->data();
  view.bytes = owner->size();
  view.owner = std::move(owner);
}

// The view of bytes that lie in a file. Bools other than 0 and 1 cost a copy.
Status set_view(TensorView& view, const TensorLayout& layout, std::span<const uint8_t> bytes,
                std::shared_ptr<const void> owner) {
  if (bytes.size() != layout.bytes) return wrong_data_size(layout, bytes.size());
  auto is_bool = [](uint8_t b) { return b <= 1; };
  if (view.dtype() == DType::kBool && !std::all_of(bytes.begin(), bytes.end(), is_bool)) {
    AlignedBytes copy(bytes.begin(), bytes.end());
    for (uint8_t& b : copy) b = b != 0;
    set_owned(view, std::move(copy));
    return {};
  }
  view.data = bytes.data();
  view.bytes = bytes.size();
  view.owner = std::move(owner);
  return {};
}

// Numbers of external data are written as text.
Result<uint64_t> parse_number(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    return invalid("external data: " + key + " " + quote(text) + " is not a number");
  return value;
}

}  // namespace

// Keys other than these (checksum) are ignored.
Result<ExternalRange> external_range(const TensorProto& proto) {
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") {
      TW_ASSIGN(range.offset, parse_number(entry.key(), entry.value()));
    }
    if (entry.key() == "length") {
      TW_ASSIGN(range.length, parse_number(entry.key(), entry.value()));
    }
  }
  return range;
}

namespace {

Status set_strings(TensorView& view, const TensorLayout& layout, const TensorProto& typed) {
  if (typed.string_data_size() != layout.count)
    return invalid(std::to_string(typed.string_data_size()) + " strings, shape " +
                   to_string(layout.shape) + " needs " + std::to_string(layout.count));
  view.strings.assign(typed.string_data().begin(), typed.string_data().end());
  return {};
}

// The data are typed fields, which the stripped message lacks: parse the original, one at a time.
Status set_typed(TensorView& view, const TensorLayout& layout, std::span<const uint8_t> message) {
  TensorProto typed;
  if (message.size() > INT_MAX ||
      !typed.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return invalid("damaged tensor data");
  if (layout.type.field == TypedField::kString) return set_strings(view, layout, typed);
  TW_ASSIGN(AlignedBytes bytes, decode_typed_data(typed, layout));
  if (view.dtype() == DType::kBool)
    for (uint8_t& b : bytes) b = b != 0;
  set_owned(view, std::move(bytes));
  return {};
}

// Position of value i in the dense tensor, or an error when an index is out of range.
Result<int64_t> dense_position(const TensorView& indices, int64_t i, const Shape& shape) {
  size_t rank = indices.shape.size() == 2 ? shape.size() : 1;
  int64_t position = 0;
  for (size_t d = 0; d < rank; ++d) {
    int64_t index = 0;
    size_t at = (static_cast<size_t>(i) * rank + d) * sizeof(index);
    std::memcpy(&index, indices.data + at, sizeof(index));
    int64_t extent = indices.shape.size() == 2 ? shape[d] : *element_count(shape);
    if (index < 0 || index >= extent)
      return invalid("sparse tensor: index " + std::to_string(index) + " in shape " +
                     to_string(shape));
    position = position * extent + index;
  }
  return position;
}

// Indices are numbers in the flat tensor or tuples, by their shape; only COO is part of the format.
Status check_sparse(const TensorView& values, const TensorView& indices, const Shape& shape) {
  if (values.shape.size() != 1) return invalid("sparse tensor: values must have one dimension");
  Shape linear{values.shape[0]}, tuples{values.shape[0], static_cast<int64_t>(shape.size())};
  if (indices.dtype() != DType::kInt64 || (indices.shape != linear && indices.shape != tuples))
    return invalid("sparse tensor: indices must be i64 of shape " + to_string(linear) + " or " +
                   to_string(tuples) + ", found " + to_string(indices.shape));
  if (!values.dtype())
    return unsupported("sparse tensor of element type " + onnx_element_name(values.onnx_code));
  return {};
}

}  // namespace

Result<TensorView> decode_tensor(const TensorProto& proto, TensorSource& source) {
  TW_ASSIGN(TensorLayout layout, tensor_layout(proto));
  TensorView view;
  view.onnx_code = layout.type.code;
  view.shape = layout.shape;
  bool strings = layout.type.field == TypedField::kString;
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (strings) return invalid("strings cannot be external data");
    TW_ASSIGN(ExternalRange range, external_range(proto));
    TW_ASSIGN(MappedRange mapped, source.external.map(range));
    TW_RETURN_IF_ERROR(set_view(view, layout, mapped.bytes, mapped.file));
    return view;
  }
  if (!proto.has_raw_data()) {
    if (layout.count != 0) return wrong_data_size(layout, 0);
    return view;
  }
  auto payload = decode_payload(proto.raw_data(), source.file.size());
  if (!payload) return internal_error("tensor data were not stripped");
  auto bytes = source.file.subspan(payload->offset, payload->length);
  if (payload->kind == Payload::Kind::kMessage) {
    TW_RETURN_IF_ERROR(set_typed(view, layout, bytes));
  } else if (strings) {
    return invalid("strings cannot be raw data");
  } else {
    TW_RETURN_IF_ERROR(set_view(view, layout, bytes, source.owner));
  }
  return view;
}

Result<TensorView> decode_sparse_tensor(const SparseTensorProto& proto, TensorSource& source) {
  TW_ASSIGN(TensorView values, decode_tensor(proto.values(), source));
  TW_ASSIGN(TensorView indices, decode_tensor(proto.indices(), source));
  TensorView dense;
  dense.onnx_code = values.onnx_code;
  dense.shape.assign(proto.dims().begin(), proto.dims().end());
  auto count = element_count(dense.shape);
  if (!count) return invalid("shape " + to_string(dense.shape) + " is negative or too large");
  TW_RETURN_IF_ERROR(check_sparse(values, indices, dense.shape));
  size_t width = static_cast<size_t>(byte_size(*values.dtype()));
  if (static_cast<size_t>(*count) > kMaxDenseBytes / width)
    return limit_error("sparse tensor of shape " + to_string(dense.shape) + " is too large");
  AlignedBytes bytes(static_cast<size_t>(*count) * width, 0);
  int64_t previous = -1;
  for (int64_t i = 0; i < values.shape[0]; ++i) {
    TW_ASSIGN(int64_t position, dense_position(indices, i, dense.shape));
    if (position <= previous) return invalid("sparse tensor: indices must be ascending");
    previous = position;
    std::memcpy(bytes.data() + static_cast<size_t>(position) * width,
                values.data + static_cast<size_t>(i) * width, width);
  }
  set_owned(dense, std::move(bytes));
  return dense;
}

}  // namespace tilewright
