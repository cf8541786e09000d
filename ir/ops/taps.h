// Reading x between its elements: positions beyond its borders, and the taps of interpolation.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/compute.h"

namespace tilewright::ir {

// The type that positions and weights between elements are computed in.
inline DType interpolation_type(DType t) { return t == DType::kFloat64 ? t : DType::kFloat32; }

// How positions outside x are brought back: v beyond [low, high] is mirrored at the near border,
// again and again.
struct Borders {
  std::string padding;
  Expr extent, low, high;  // low, high: floats
  Expr reflect(const Expr& v) const;
  // 1 or -1: how the mirrored position moves with v.
  Expr reflect_slope(const Expr& v) const;
};
// Element number `at` (an integer, perhaps outside) of one dimension; `inside` becomes false where
// zeros are read.
Expr border_index(const Borders& b, const Expr& at, Expr& inside);

// Weights of the taps around a position, which lies so far behind an element: 2 of mode linear, 4 of
// cubic; and how they change with the position.
std::vector<Expr> tap_weights(const std::string& mode, const Expr& part);
std::vector<Expr> tap_slopes(const std::string& mode, const Expr& part);

struct GridSample {
  Buffer x;
  std::string mode;
  std::vector<Borders> borders;
  DType t;
  int64_t derivative = -1;  // the dimension of `borders` whose weights are slopes; -1: none
  std::vector<Expr> weights(size_t d, const Expr& part) const {
    return static_cast<int64_t>(d) == derivative ? tap_slopes(mode, part) : tap_weights(mode, part);
  }
  // Weighted sum over the taps of dimensions d, d + 1, ...; `at` and `inside` hold those before.
  Expr sum(size_t d, const Axes& p, Axes at, Expr inside) const;
};
inline const AttributeDef kSampleDerivative{
    "derivative", AttributeKind::kInt,
    "by the position along that dimension of the spatial ones, as far as the operand moves it; "
    "default -1: the value itself"};

}  // namespace tilewright::ir
