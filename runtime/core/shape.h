// Concrete tensor shapes: extents in elements, outermost first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

// Extents in elements, outermost dimension first; empty: a scalar, which has one element.
using Shape = std::vector<int64_t>;

inline constexpr int kRankLimit = 64;  // dimensions of a tensor

// Product of the extents, or nothing when one is negative or the product exceeds 2^62.
inline std::optional<int64_t> element_count(const Shape& shape) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : shape) {
    if (d < 0) return std::nullopt;
    if (d == 0) {
      zero = true;
      continue;
    }
    if (n > (int64_t{1} << 62) / d) return std::nullopt;
    n *= d;
  }
  return zero ? 0 : n;
}

// "[2, 3]", as errors and tables print it.
inline std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

}  // namespace tilewright
