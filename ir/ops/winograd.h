// Names that the Winograd convolution and its schedule share.
#pragma once

namespace tilewright::ir {

// The blocks of winograd_conv. Tiles of m x m results: [n, down, across]; p = m + 2.
inline constexpr const char* kWinogradRows = "winograd_rows";    // [p, n, down, m across + 2, c]
inline constexpr const char* kWinogradInput = "winograd_input";  // [p, p, tiles, c]
inline constexpr const char* kWinogradProduct = "winograd_product";  // [p, p, tiles, o], over c
inline constexpr const char* kWinogradColumns = "winograd_columns";  // [m, p, tiles, o]
inline constexpr const char* kWinogradOutput = "winograd_output";    // [n, o, h, w]

// The blocks of winograd_weights.
inline constexpr const char* kWinogradWeightsColumns = "weights_columns";  // [p, 3, c, o]
inline constexpr const char* kWinogradWeightsRows = "weights_rows";        // [p, p, c, o]

// The blocks of winograd_weights_gradient beside kWinogradRows and kWinogradInput, those of x.
inline constexpr const char* kWinogradGradientRows =
    "winograd_dy_rows";  // [p, n, down, m across, o]
inline constexpr const char* kWinogradGradientInput = "winograd_dy_tiles";  // [p, p, tiles, o]
inline constexpr const char* kWinogradGradientProduct = "winograd_dw";  // [p, p, c, o], over tiles
inline constexpr const char* kWinogradGradientColumns = "winograd_dw_columns";  // [3, p, c, o]
inline constexpr const char* kWinogradGradientOutput = "winograd_dw_output";    // [o, c, 3, 3]

}  // namespace tilewright::ir
