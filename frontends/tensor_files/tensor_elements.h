// From the elements of a TensorProto to contiguous bytes, and back. Only files that already see
// protobuf include this header.
#pragma once

#include "frontends/tensor_files/element_type.h"
#include "frontends/tensor_files/tensor.pb.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright {

// How many elements and bytes a TensorProto must have, whichever field holds them.
struct TensorLayout {
  // From data_type and dims of the message.
  OnnxElementType type;
  Shape shape;
  int64_t count = 0;  // elements
  size_t bytes = 0;   // 0 for strings
};

// Element type and dims, checked. Errors: kInvalid (negative dims, too large), kUnsupported (type).
Result<TensorLayout> tensor_layout(const onnx_format::TensorProto& proto);

// "12 bytes of data, shape [2, 2] of f32 needs 16" as an error.
Error wrong_data_size(const TensorLayout& layout, size_t bytes_found);

// The elements of the typed field that belongs to the element type, little-endian and packed.
// Not for strings. Errors: kInvalid when the field holds too few or too many.
Result<AlignedBytes> decode_typed_data(const onnx_format::TensorProto& proto,
                                       const TensorLayout& layout);

// A tensor stored in the message itself. Errors also kUnsupported for element types outside DType
// and for external data.
Result<HostTensor> decode_host_tensor(const onnx_format::TensorProto& proto);

// Into raw_data of an empty message, with type and dims; the name is left to the caller.
void encode_host_tensor(const HostTensor& tensor, onnx_format::TensorProto& proto);

}  // namespace tilewright
