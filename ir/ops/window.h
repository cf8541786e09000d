// Geometry of sliding windows: convolution and pooling over the last rank - 2 dimensions.
#pragma once

#include <vector>

#include "ir/graph/op.h"

namespace tilewright::ir {

struct WindowGeometry {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<Expr> pads_begin, pads_end;
  std::vector<Expr> out;  // output extents of the spatial dimensions
};
// Reads the attributes kernel_shape (or `kernel`), strides, dilations, pads, auto_pad, ceil_mode for an input [n, c, spatial...].
Result<WindowGeometry> window_geometry(const NodeView& view, const std::vector<Expr>& input, std::vector<int64_t> kernel);

}  // namespace tilewright::ir
