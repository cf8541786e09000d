// How far results may be from those of every operator computed by itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class Numerics : uint8_t {
  // Each result is rounded to its operator's type, and sums go by an order that follows from shapes
  // and the width of vectors alone: not from sizes of caches, measured speeds or threads. Shapes are
  // those that the compiler sees: an extent that only the run knows counts as a long one, and short
  // rows may add otherwise in code for their extent alone. Sums of products of quantised operands
  // are exact (integers).
  kExact,
  // Also rounded in other places (a product and the sum that takes it at once, factors moved into
  // weights, sums in the order that suits caches), and Winograd convolution: its largest error over
  // a layer is at most 5 times that of the plain sums, and an infinity or NaN spreads over the tiles
  // of 4 x 4 results that it is read for.
  kStandard,
  // Also arithmetic narrower than the operator's type: activations rounded to 16 bits.
  kRelaxed,
};

// Spellings of the command line (--numerics) and of the text forms, by level.
inline constexpr std::array<std::string_view, 3> kNumericsNames{"exact", "standard", "relaxed"};

// Between levels and their spellings; nothing for another word.
constexpr std::string_view name(Numerics n) { return kNumericsNames[static_cast<size_t>(n)]; }
constexpr std::optional<Numerics> numerics_from_name(std::string_view text) {
  for (size_t i = 0; i < kNumericsNames.size(); ++i)
    if (kNumericsNames[i] == text) return static_cast<Numerics>(i);
  return std::nullopt;
}

}  // namespace tilewright
