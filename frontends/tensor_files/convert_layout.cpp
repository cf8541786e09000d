#include "frontends/tensor_files/convert_layout.h"

#include <algorithm>
#include <cstring>

namespace tilewright {
namespace {

template <size_t kWidth>
void gather_row_major(const uint8_t* from, uint8_t* to, const Shape& shape) {
  size_t rank = shape.size();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (size_t i = 1; i < rank; ++i) stride[i] = stride[i - 1] * shape[i - 1];
  int64_t count = *element_count(shape), offset = 0;
  for (int64_t n = 0; n < count; ++n, to += kWidth) {
    std::memcpy(to, from + static_cast<size_t>(offset) * kWidth, kWidth);
    for (size_t d = rank; d-- > 0;) {
      offset += stride[d];
      if (++index[d] < shape[d]) break;
      offset -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void swap_byte_order(HostTensor& tensor) {
  size_t width = static_cast<size_t>(byte_size(tensor.dtype));
  for (size_t i = 0; i < tensor.bytes.size(); i += width)
    std::reverse(tensor.data<uint8_t>() + i, tensor.data<uint8_t>() + i + width);
}

void fortran_to_row_major(HostTensor& tensor) {
  if (tensor.shape.size() < 2 || tensor.bytes.empty()) return;
  AlignedBytes from = std::move(tensor.bytes);
  tensor.bytes = AlignedBytes(from.size());
  switch (byte_size(tensor.dtype)) {
    case 1: return gather_row_major<1>(from.data(), tensor.bytes.data(), tensor.shape);
    case 2: return gather_row_major<2>(from.data(), tensor.bytes.data(), tensor.shape);
    case 4: return gather_row_major<4>(from.data(), tensor.bytes.data(), tensor.shape);
    case 8: return gather_row_major<8>(from.data(), tensor.bytes.data(), tensor.shape);
  }
  TW_CHECK(false);
}

void normalize_bools(HostTensor& tensor) {
  if (tensor.dtype != DType::kBool) return;
  for (uint8_t& b : tensor.bytes) b = b != 0;
}

}  // namespace tilewright
