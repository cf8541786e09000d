// Tensors of the oracle's tests: random ones, their elements as numbers, and how far two differ.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/loops/float16.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

namespace {

void set_element(HostTensor& t, int64_t i, double value) {
  uint8_t* at = t.bytes.data() + i * byte_size(t.dtype);
  const auto put = [&](auto v) { std::memcpy(at, &v, sizeof(v)); };
  switch (t.dtype) {
    case DType::kFloat32: return put(static_cast<float>(value));
    case DType::kFloat64: return put(value);
    case DType::kFloat16: return put(ir::Half::from_double(value));
    case DType::kBFloat16: return put(ir::BFloat::from_double(value));
    case DType::kInt8: return put(static_cast<int8_t>(value));
    case DType::kInt16: return put(static_cast<int16_t>(value));
    case DType::kInt32: return put(static_cast<int32_t>(value));
    case DType::kInt64: return put(static_cast<int64_t>(value));
    case DType::kUInt8: return put(static_cast<uint8_t>(value));
    case DType::kUInt16: return put(static_cast<uint16_t>(value));
    case DType::kUInt32: return put(static_cast<uint32_t>(value));
    case DType::kUInt64: return put(static_cast<uint64_t>(value));
    case DType::kBool: return put(static_cast<uint8_t>(value != 0));
  }
}

}  // namespace

double element(const HostTensor& t, int64_t i) {
  ir::Constant c{t.dtype, t.shape, t.bytes.data(), t.bytes.size(), nullptr};
  return ir::number_at(c, i);
}

HostTensor random_tensor(DType dtype, const Shape& shape, std::mt19937_64& random) {
  HostTensor t(dtype, shape);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> small(1, 5), bit(0, 1);
  for (int64_t i = 0; i < t.size(); ++i) {
    if (is_float(dtype))
      set_element(t, i, real(random));
    else if (dtype == DType::kBool)
      set_element(t, i, bit(random));
    else
      set_element(t, i, is_unsigned(dtype) || bit(random) ? small(random) : -small(random));
  }
  return t;
}

HostTensor random_bytes(DType dtype, const Shape& shape, std::mt19937_64& random) {
  TW_CHECK(is_integer(dtype) && dtype != DType::kBool);
  HostTensor t(dtype, shape);
  for (uint8_t& b : t.bytes) b = static_cast<uint8_t>(random());
  return t;
}

HostTensor repeated(DType dtype, const Shape& shape, const std::vector<double>& values) {
  HostTensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i)
    set_element(t, i, values[static_cast<size_t>(i) % values.size()]);
  return t;
}

int64_t first_difference(const HostTensor& a, const HostTensor& b) {
  const auto size = static_cast<size_t>(byte_size(a.dtype));
  for (int64_t i = 0; i < a.size(); ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.bytes.data() + at, b.bytes.data() + at, size) == 0) continue;
    if (!is_float(a.dtype) || !(std::isnan(element(a, i)) && std::isnan(element(b, i)))) return i;
  }
  return -1;
}

std::optional<double> difference(const HostTensor& a, const HostTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return std::nullopt;
  if (!is_float(a.dtype)) return a.bytes == b.bytes ? std::optional<double>(0) : std::nullopt;
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = element(a, i), y = element(b, i);
    if (std::isfinite(x) && std::isfinite(y))
      largest = std::max(largest, std::abs(x - y));
    else if (!(std::isnan(x) && std::isnan(y)) && x != y)
      return std::nullopt;
  }
  return largest;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return std::ldexp(1.0, -23);
    case DType::kFloat64: return std::ldexp(1.0, -52);
    case DType::kFloat16: return std::ldexp(1.0, -10);
    case DType::kBFloat16: return std::ldexp(1.0, -7);
    default: return 0;
  }
}

}  // namespace tilewright
