// Geometry of sliding windows: convolution and pooling over the last rank - 2 dimensions.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph/compute.h"

namespace tilewright::ir {

// All lists have one entry per spatial dimension.
struct WindowGeometry {
  // In elements; output i's window covers i * stride - pad + r * dilation for r in [0, kernel).
  std::vector<int64_t> kernel, strides, dilations;
  // Expressions, as they may follow from symbolic extents.
  std::vector<Expr> pads_begin, pads_end;
  std::vector<Expr> out;  // output extents of the spatial dimensions
};
// The attributes strides, dilations and pads for windows of `kernel` elements, as they stand: pads of
// any sign, and `out` is empty. kInvalid where they do not fit the number of spatial dimensions.
Result<WindowGeometry> window_lists(const NodeView& view, std::vector<int64_t> kernel);
// The spatial extents of the weights [.., .., kernel...] that are operand 1; needs_value where one is
// not known.
Result<std::vector<int64_t>> kernel_of_weights(const NodeView& view);
// Reads the attributes kernel_shape (or `kernel`), strides, dilations, pads, ceil_mode
// for an input [n, c, spatial...].
Result<WindowGeometry> window_geometry(const NodeView& view, const std::vector<Expr>& input,
                                       std::vector<int64_t> kernel);

// Position in x of element r of the window of output i; `inside` tells whether it lies in x.
Axes window_position(const WindowGeometry& g, const Buffer& x, const Axes& i, const Axes& r,
                     Expr& inside);
// The kernel's extents as expressions: those of the reduce axes.
std::vector<Expr> window_extents(const WindowGeometry& g);
// x with its padding written out, as `fill` gives it at an index of the copy; x itself when there is none.
Buffer padded_copy(ComputeContext& c, const Buffer& x, const WindowGeometry& g,
                   const std::function<Expr(const Axes&)>& fill);
// One result of x's type per window.
Status infer_pool(InferContext& c);
// Of max_pool, with or without indices: to the first of the largest elements of each window.
void gradient_of_max_pool(GradientContext& c);
// Of all operators that slide a window.
extern const std::vector<AttributeDef> kWindowAttributes;

}  // namespace tilewright::ir
