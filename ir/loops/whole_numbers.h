// Division of whole numbers, defined for all 64-bit ones.
#pragma once

#include <cstdint>
#include <numeric>

namespace tilewright::ir {

// b is not 0. The smallest number divided by -1 wraps to itself.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// b is positive; std::gcd is undefined for the smallest number, whose remainder is not.
inline int64_t common_divisor(int64_t a, int64_t b) { return std::gcd(a % b, b); }

}  // namespace tilewright::ir
