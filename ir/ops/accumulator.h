#pragma once

#include "ir/graph/op.h"
#include "runtime/core/dtype.h"

namespace tilewright::ir {

// The type that sums and products of elements of type t are kept in: halves accumulate in f32 and
// are rounded once at the end; f32, f64 and integers accumulate as they are, integers wrapping.
inline DType accumulator(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}

// The attribute out_dtype of a sum of products, or the type of its first operand. kInvalid, at the
// node, for a word that is no type.
inline Result<DType> out_dtype(const InferContext& c) {
  if (!c.has_attribute("out_dtype")) return c.type(0).dtype;
  const auto t = dtype_from_name(c.attr_string("out_dtype"));
  if (!t) return c.error("out_dtype '" + c.attr_string("out_dtype") + "' is no type");
  return *t;
}

}  // namespace tilewright::ir
