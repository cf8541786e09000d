// How weighted sums of integers become integers again.
#pragma once

#include "ir/graph/compute.h"

namespace tilewright::ir {

// The type in which weighted sums of elements of type t are taken: f64 for integers.
inline DType weighted_type(DType t) {
  return is_float(t) && t != DType::kFloat64 ? DType::kFloat32 : DType::kFloat64;
}

// v to the nearest multiple of 2^-20, or 2^-14 for elements of 32 bits and more. Weights are
// fractions that f64 rounds, so that a sum that is a whole number or a half comes out a little beside
// it, by an error that hangs on the size of the terms and the order of the sum; rounding to an
// integer must not see that.
inline Expr without_error(DType t, const Expr& v) {
  const double steps = byte_size(t) < 4 ? 0x1p20 : 0x1p14;
  return unary(UnaryOp::kRoundEven, v * constant(steps, v.dtype())) *
         constant(1 / steps, v.dtype());
}
// Converts an integral float to an integer type, limited to its range.
inline Expr limited(DType t, const Expr& whole) {
  // f32 holds the whole numbers that small types have, and is converted to them faster.
  return cast(t, byte_size(t) < 4 ? cast(DType::kFloat32, whole) : whole);
}
// Converts a weighted sum to type t. For an integer type it rounds half to even and saturates, as
// saturate_cast of ONNX's reference implementation does.
inline Expr rounded_sum(DType t, const Expr& v) {
  return is_integer(t) ? limited(t, unary(UnaryOp::kRoundEven, without_error(t, v))) : cast(t, v);
}
// Converts a weighted sum to type t; for an integer type it truncates towards zero and saturates.
inline Expr truncated_sum(DType t, const Expr& v) {
  return is_integer(t) ? limited(t, unary(UnaryOp::kTrunc, without_error(t, v))) : cast(t, v);
}

}  // namespace tilewright::ir
