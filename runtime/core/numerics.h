// How far results may be from those of every operator computed by itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class Numerics : uint8_t {
  // Each result is rounded to its operator's type, and sums go by an order that follows from shapes
  // and the width of vectors alone: not from sizes of caches, measured speeds or threads. Sums of
  // products of quantised operands are exact (integers).
  kExact,
  // Also rounded in other places (a product and the sum that takes it at once, factors moved into
  // weights, sums in the order that suits caches), and algorithms whose error is within a stated
  // multiple of that of the plain sums (Winograd convolution).
  kStandard,
  // Also arithmetic narrower than the operator's type: activations rounded to 16 bits.
  kRelaxed,
};

inline constexpr std::array<std::string_view, 3> kNumericsNames{"exact", "standard", "relaxed"};

constexpr std::string_view name(Numerics n) { return kNumericsNames[static_cast<size_t>(n)]; }
constexpr std::optional<Numerics> numerics_from_name(std::string_view text) {
  for (size_t i = 0; i < kNumericsNames.size(); ++i)
    if (kNumericsNames[i] == text) return static_cast<Numerics>(i);
  return std::nullopt;
}

}  // namespace tilewright
