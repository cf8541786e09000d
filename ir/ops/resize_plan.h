// What a resize computes, found out from its operands and attributes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/families.h"

namespace tilewright::ir {

// One dimension whose extent or coordinates change.
struct ResizeAxis {
  // Extents before and after; out / in is the scale where no operand states one.
  int axis = 0;
  Expr in, out;
  Expr scale;                        // f64
  std::optional<double> known;       // the scale
  int roi_begin = -1, roi_end = -1;  // elements of roi
};
// The whole operator, with ONNX's attribute values as words (Resize-19 in ONNX's operator list).
struct ResizePlan {
  // The result's extents.
  std::vector<Expr> dims;
  std::vector<ResizeAxis> axes;  // those that change
  // nearest, linear or cubic; how places are mapped; how the nearest is rounded.
  std::string mode, coordinates, nearest;
  // Widen the filter when shrinking; leave samples outside out of the weights.
  bool antialias = false, exclude_outside = false;
};

// Scales and coordinates are f64.
inline Expr f64(double x) { return float_imm(x, DType::kFloat64); }
inline Expr f64(const Expr& e) { return cast(DType::kFloat64, e); }

// Errors: kInvalid for attributes and operands that contradict each other, kUnsupported for scales
// that would have to be known.
Result<ResizePlan> resize_plan(const NodeView& c);

}  // namespace tilewright::ir
