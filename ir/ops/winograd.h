// Names and sizes of the Winograd convolution, which its schedule and cost share.
#pragma once

#include <cstdint>

namespace tilewright::ir {

inline constexpr int64_t kWinogradTile = 4;    // results of a tile along one dimension
inline constexpr int64_t kWinogradPoints = 6;  // products for them

// The blocks of winograd_conv. Tiles: [n, down, across].
inline constexpr const char* kWinogradRows = "winograd_rows";    // [6, n, down, 4 across + 2, c]
inline constexpr const char* kWinogradInput = "winograd_input";  // [6, 6, tiles, c]
inline constexpr const char* kWinogradProduct = "winograd_product";  // [6, 6, tiles, o], over c
inline constexpr const char* kWinogradColumns = "winograd_columns";  // [4, 6, tiles, o]
inline constexpr const char* kWinogradOutput = "winograd_output";    // [n, o, h, w]

}  // namespace tilewright::ir
