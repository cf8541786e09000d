// The one-dimensional transforms of Winograd's F(m, 3), m 2 or 4, and their transposes, as expressions
// over the elements of a row or column of a tile; two-dimensional ones apply them along both.
//
// For m = 4 the polynomials are evaluated at 0, s, -s, 2 s, -2 s and infinity. The usual s = 1 lets
// powers up to 8 meet fractions down to 1/24, which costs three bits; at s = 3/4 they are nearer to
// one another, at no further cost but two multiplications, and exact numbers all the same. (On
// choosing points: Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the
// Accuracy of Winograd Convolution for Deep Neural Networks", 2020.)
#pragma once

#include <functional>
#include <vector>

#include "ir/graph/compute.h"

namespace tilewright::ir {

using WinogradValues = std::vector<Expr>;  // along a row or column of a tile

// value(0), value(1), ...
WinogradValues winograd_values(int64_t n, const std::function<Expr(int64_t)>& value);

// Elements i, in f32: of B^T d for m + 2 values of x; of A^T p, for m + 2 products; of A y, for m
// values of the results' gradient.
Expr transform_input(const Expr& i, const WinogradValues& d);
Expr transform_output(const Expr& i, const WinogradValues& p);
Expr transform_output_gradient(const Expr& i, const WinogradValues& y);
// In f64: of G w, of m + 2 = `points`, for 3 weights; of G^T u, of 3, for the gradient of m + 2.
Expr transform_weights(const Expr& i, int64_t points, const WinogradValues& w);
Expr transform_weights_gradient(const Expr& i, const WinogradValues& u);

// Values in tiles of `tile` places, where those beyond the borders are 0.
struct TiledInput {
  const Buffer& x;            // [n, channels, height, width]
  int64_t top = 0, left = 0;  // zeros before x
  int64_t tile = 4;
  // Row k of tile `down`, at a column counted from the first zero.
  Expr operator()(const Expr& n, const Expr& channel, const Expr& down, int64_t k,
                  const Expr& column) const;
};
// The values of tiles of m + 2 = `points` places that begin every m, transformed along both: f32
// [points, points, n, down, across, channels], in blocks kWinogradRows and kWinogradInput.
Buffer transformed_input(ComputeContext& c, const TiledInput& x, const Expr& down,
                         const Expr& across);

// Returns the attribute `pads`: begins, then ends, of the two spatial dimensions.
inline std::vector<int64_t> pads_of(const NodeView& c) {
  return c.attr_ints("pads", std::vector<int64_t>(4, 0));
}

}  // namespace tilewright::ir
