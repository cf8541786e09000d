// Geometry of sliding windows: convolution and pooling over the last rank - 2 dimensions.
#pragma once

#include <vector>

#include "ir/graph/compute.h"

namespace tilewright::ir {

struct WindowGeometry {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<Expr> pads_begin, pads_end;
  std::vector<Expr> out;  // output extents of the spatial dimensions
};
// Reads the attributes kernel_shape (or `kernel`), strides, dilations, pads, ceil_mode
// for an input [n, c, spatial...].
Result<WindowGeometry> window_geometry(const NodeView& view, const std::vector<Expr>& input,
                                       std::vector<int64_t> kernel);

// Position in x of element r of the window of output i; `inside` tells whether it lies in x.
Axes window_position(const WindowGeometry& g, const Buffer& x, const Axes& i, const Axes& r,
                     Expr& inside);
std::vector<Expr> window_extents(const WindowGeometry& g);
// One result of x's type per window.
Status infer_pool(InferContext& c);
extern const std::vector<AttributeDef> kWindowAttributes;

}  // namespace tilewright::ir
