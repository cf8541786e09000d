// Geometry of transposed convolutions: the windows of a convolution from its results to its input.
#pragma once

#include "ir/ops/window.h"

namespace tilewright::ir {

// Of a node of conv_transpose: `out` are the extents of its result, and element i of x has the
// window i * stride - pad + k * dilation of the result. Pads below 0 add zeros.
Result<WindowGeometry> transposed_geometry(const NodeView& view);

}  // namespace tilewright::ir
