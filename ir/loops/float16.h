// The two 16-bit floating-point formats as bits: exact widening, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace tilewright::ir {

// A format of 1 sign bit, kExponentBits and kMantissaBits, IEEE-like.
template <int kExponentBits, int kMantissaBits>
struct SmallFloat {
  // Of the exponent, as IEEE 754 defines it: an exponent field of kBias means 2^0.
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint16_t kInfinity =
      static_cast<uint16_t>(((1 << kExponentBits) - 1) << kMantissaBits);

  // One rounding, straight from double (a float widens exactly).
  static uint16_t from_double(double x) {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    const uint16_t sign = static_cast<uint16_t>((bits >> 63) << 15);
    const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
    uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff)
      return static_cast<uint16_t>(sign | kInfinity | (mantissa ? 1u << (kMantissaBits - 1) : 0u));
    if (exponent == 0) return sign;  // far below the smallest subnormal of either format
    mantissa |= uint64_t{1} << 52;
    int e = exponent - 1023 + kBias;  // exponent field of the result
    int shift = 52 - kMantissaBits;   // bits to drop
    if (e <= 0) {
      shift += 1 - e;
      e = 0;
    }  // subnormal: drop more
    if (shift > 54) return sign;
    const uint64_t half = uint64_t{1} << (shift - 1);
    const uint64_t rest = mantissa & ((half << 1) - 1);
    uint64_t kept = mantissa >> shift;
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // A carry out of the mantissa raises the exponent by itself; the hidden bit is taken off normal
    // numbers.
    if (e > 0) kept += static_cast<uint64_t>(e - 1) << kMantissaBits;
    return static_cast<uint16_t>(sign | (kept >= kInfinity ? kInfinity : kept));
  }

  // Exact: every number of the format is one of f32. NaN keeps its payload.
  static float to_float(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const int exponent = (bits >> kMantissaBits) & ((1 << kExponentBits) - 1);
    const uint32_t mantissa = bits & ((1u << kMantissaBits) - 1);
    if (exponent == (1 << kExponentBits) - 1)
      return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << (23 - kMantissaBits)));
    if (kExponentBits == 8) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    if (exponent == 0) {
      const float tiny =
          std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - kMantissaBits) << 23);
      const float magnitude = static_cast<float>(mantissa) * tiny;
      return sign ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | static_cast<uint32_t>(exponent - kBias + 127) << 23 |
                                mantissa << (23 - kMantissaBits));
  }
};

// IEEE 754 binary16 and bfloat16.
using Half = SmallFloat<5, 10>;
using BFloat = SmallFloat<8, 7>;

}  // namespace tilewright::ir
