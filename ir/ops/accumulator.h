#pragma once

#include "runtime/core/dtype.h"

namespace tilewright::ir {

// The type that sums and products of elements of type t are kept in: halves accumulate in f32 and
// are rounded once at the end; f32, f64 and integers accumulate as they are, integers wrapping.
inline DType accumulator(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}

}  // namespace tilewright::ir
