// Tensors of a stripped model (strip_payloads.h) as views. Only files that already see protobuf
// include this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "frontends/onnx/external_data.h"
#include "frontends/onnx/model.h"
#include "frontends/tensor_files/tensor.pb.h"
#include "runtime/core/result.h"

namespace tilewright {

inline constexpr size_t kMaxDenseBytes = size_t{1} << 30;  // of a sparse tensor made dense

// Where the tensors of one model have their elements: in its file, or in files beside it.
struct TensorSource {
  std::span<const uint8_t> file;      // the model before its payloads were stripped
  std::shared_ptr<const void> owner;  // keeps `file` alive; views share it
  ExternalData external;              // the files beside the model
};

// Data that are stored as plain bytes become a view into the file, other data are decoded. Bools
// are 0 or 1. Errors carry no location: the caller knows whose tensor it is.
Result<TensorView> decode_tensor(const onnx_format::TensorProto& proto, TensorSource& source);

// Where a tensor of data_location EXTERNAL says that its data lie.
Result<ExternalRange> external_range(const onnx_format::TensorProto& proto);

// Dense, with zeros where the tensor has no values. kLimit beyond kMaxDenseBytes.
Result<TensorView> decode_sparse_tensor(const onnx_format::SparseTensorProto& proto,
                                        TensorSource& source);

}  // namespace tilewright
