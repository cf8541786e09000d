#include "autotune/check/compare_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/loops/float16.h"

namespace tilewright::autotune {

namespace {

// Other orders of sums move results by some roundings each; a wrong schedule moves them by all they
// are. Between these the bound is generous. Of 16 bits the sums are made in f32, so that a result may
// round the other way, and what is computed from that.
constexpr double kRoundings = 4096, kFewRoundings = 8;

template <typename T>
T at(const uint8_t* bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

// `number` widens element i of either; `unit` is half the distance from 1 to the next number.
template <typename F>
std::optional<Difference> differ(const uint8_t* found, const uint8_t* expected, int64_t count,
                                 double tolerance, F&& number) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const double x = std::abs(number(expected, i)); std::isfinite(x))
      largest = std::max(largest, x);
  for (int64_t i = 0; i < count; ++i) {
    const double x = number(found, i), y = number(expected, i);
    const bool same = std::isfinite(y) ? std::abs(x - y) <= tolerance * largest
                      : std::isnan(y)  ? std::isnan(x)
                                       : x == y;
    if (!same) return Difference{i, x, y};
  }
  return std::nullopt;
}

template <typename F>
std::optional<Difference> differ_as(DType dtype, const uint8_t* found, const uint8_t* expected,
                                    int64_t count, double tolerance, F&& number) {
  const auto size = static_cast<size_t>(byte_size(dtype));
  if (tolerance > 0) return differ(found, expected, count, tolerance, number);
  for (int64_t i = 0; i < count; ++i) {
    const size_t offset = static_cast<size_t>(i) * size;
    if (std::memcmp(found + offset, expected + offset, size) == 0) continue;
    const double x = number(found, i), y = number(expected, i);
    if (!(std::isnan(x) && std::isnan(y))) return Difference{i, x, y};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Difference> first_difference(DType dtype, const uint8_t* found,
                                           const uint8_t* expected, int64_t count, bool same_bits) {
  const auto bytes = static_cast<size_t>(count * byte_size(dtype));
  if (std::memcmp(found, expected, bytes) == 0) return std::nullopt;  // as in most cases
  const auto with = [&](double tolerance, auto number) {
    return differ_as(dtype, found, expected, count, same_bits ? 0 : tolerance, number);
  };
  using Bytes = const uint8_t*;
  switch (dtype) {
    case DType::kFloat32:
      return with(kRoundings * 0x1p-24, [](Bytes b, int64_t i) { return at<float>(b, i); });
    case DType::kFloat64:
      return with(kRoundings * 0x1p-53, [](Bytes b, int64_t i) { return at<double>(b, i); });
    case DType::kFloat16:
      return with(kFewRoundings * 0x1p-11,
                  [](Bytes b, int64_t i) { return ir::Half::to_float(at<uint16_t>(b, i)); });
    case DType::kBFloat16:
      return with(kFewRoundings * 0x1p-8,
                  [](Bytes b, int64_t i) { return ir::BFloat::to_float(at<uint16_t>(b, i)); });
    default: break;
  }
  const int64_t size = byte_size(dtype);
  return differ_as(dtype, found, expected, count, 0, [&](Bytes b, int64_t i) {
    int64_t value = 0;
    std::memcpy(&value, b + i * size, static_cast<size_t>(std::min<int64_t>(size, 8)));
    return static_cast<double>(value);
  });
}

}  // namespace tilewright::autotune
