// The header of a .npy array (NumPy format 1.0, 2.0 and 3.0).
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/dtype.h"
#include "runtime/core/result.h"
#include "runtime/core/shape.h"

namespace tilewright {

inline constexpr size_t kNpyPrefixBytes = 12;  // magic, version and the longest length field
inline constexpr size_t kMaxNpyHeaderBytes = 64 << 10;  // longer ones are refused (kLimit)

// What the dictionary of the header says. Readers bring elements to native order
// (convert_layout.h).
struct NpyHeader {
  // descr: the element type, and its byte order.
  DType dtype = DType::kFloat32;
  bool big_endian = false;
  // First index fastest; the shape is as NumPy shows it either way.
  bool fortran_order = false;
  Shape shape;
  size_t data_bytes = 0;  // product of shape and element size, checked not to overflow
};

// Length of magic, version, length field and text, read from the first kNpyPrefixBytes (or fewer
// when the file is shorter) of an array.
Result<size_t> npy_header_length(std::span<const uint8_t> prefix);

// `header` holds exactly npy_header_length bytes. The text must be the dictionary literal that
// NumPy writes: the keys descr, fortran_order and shape, each once. Pickled (object), string,
// structured, complex and time arrays are kUnsupported.
Result<NpyHeader> parse_npy_header(std::span<const uint8_t> header);

// Format 1.0, padded to a multiple of 64 bytes as NumPy does. Errors: kUnsupported for bf16, which
// NumPy lacks; kLimit for more than 64 dimensions.
Result<std::string> format_npy_header(DType dtype, const Shape& shape);

}  // namespace tilewright
