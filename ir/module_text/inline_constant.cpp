#include "ir/module_text/inline_constant.h"

#include <cmath>
#include <cstring>

#include "ir/loops/float16.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {
constexpr int64_t kMostElements = 16;

template <typename T>
void append(std::vector<uint8_t>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}
}  // namespace

void append_element(std::vector<uint8_t>& bytes, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32: return append(bytes, static_cast<float>(value));
    case DType::kFloat64: return append(bytes, value);
    case DType::kFloat16: return append(bytes, Half::from_double(value));
    case DType::kBFloat16: return append(bytes, BFloat::from_double(value));
    default: check_failed("an element of a floating-point type", __FILE__, __LINE__);
  }
}
void append_element(std::vector<uint8_t>& bytes, DType dtype, int64_t value) {
  uint8_t raw[8];
  std::memcpy(raw, &value, sizeof raw);  // little-endian: the low bytes come first
  bytes.insert(bytes.end(), raw, raw + byte_size(dtype));
}

std::optional<std::string> inline_text(const Constant& c) {
  const auto n = tilewright::element_count(c.shape);
  if (!n || *n > kMostElements ||
      c.bytes != static_cast<size_t>(*n) * static_cast<size_t>(byte_size(c.dtype)) ||
      (*n && !c.data))
    return std::nullopt;
  std::string s = "[";
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < *n; ++i) {
    if (i) s += ", ";
    if (is_float(c.dtype)) {
      const double v = number_at(c, i);
      s += float_to_text(v, c.dtype);
      append_element(bytes, c.dtype, std::isnan(v) ? std::nan("") : v);
    } else {
      const int64_t v = integer_at(c, i);
      s += c.dtype == DType::kUInt64 ? std::to_string(static_cast<uint64_t>(v)) : std::to_string(v);
      append_element(bytes, c.dtype, v);
    }
  }
  if (*n && std::memcmp(bytes.data(), c.data, c.bytes) != 0)
    return std::nullopt;  // another NaN, a bool that is not 0 or 1
  return s + "]";
}

}  // namespace tilewright::ir
