// What a resize computes, found out from its operands and attributes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/families.h"

namespace tilewright::ir {

struct ResizeAxis {
  int axis = 0;
  Expr in, out;
  Expr scale;                        // f64
  std::optional<double> known;       // the scale
  int roi_begin = -1, roi_end = -1;  // elements of roi
};
struct ResizePlan {
  std::vector<Expr> dims;
  std::vector<ResizeAxis> axes;  // those that change
  std::string mode, coordinates, nearest;
  bool antialias = false, exclude_outside = false;
};

// Errors: kInvalid for attributes and operands that contradict each other, kUnsupported for scales
// that would have to be known.
Result<ResizePlan> resize_plan(const NodeView& c);

}  // namespace tilewright::ir
