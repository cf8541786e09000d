// Attributes of sliding windows (Conv, ConvTranspose, pooling) as ONNX writes them: `auto_pad` is
// resolved here to paddings, and kernel_shape held against the weights.
#pragma once

#include "frontends/onnx/node_import.h"

namespace tilewright::onnx {

// Given: by `pads`. Same: as many results as ceil(extent / stride), the odd element of padding at
// the end (upper) or at the begin (lower).
enum class AutoPad : uint8_t { kGiven, kValid, kSameUpper, kSameLower };
// Attribute auto_pad; fails on a word that is no mode, naming those that are.
AutoPad auto_pad(const NodeImport& n);
inline bool is_same(AutoPad mode) {
  return mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower;
}

// strides, pads, dilations and ceil_mode, as conv and pools take them, for windows of the extents
// `kernel` over x: [n, c, spatial...]. Pads that follow from auto_pad may be symbolic.
ir::Attributes window_attributes(NodeImport& n, ir::ValueId x, const std::vector<ir::Expr>& kernel);
// For a convolution with w: [o, c, kernel...].
ir::Attributes conv_attributes(NodeImport& n, ir::ValueId x, ir::ValueId w);
// For a pooling, with its kernel_shape.
ir::Attributes pool_attributes(NodeImport& n, ir::ValueId x);

// As plain integers where all are known.
ir::Attribute pads_attribute(ir::Extents pads);

// w: [o, c, kernel...] with the extents that kernel_shape gives for those of its type that are not
// known. Fails when the two contradict each other.
ir::ValueId shaped_kernel(NodeImport& n, ir::ValueId w);

}  // namespace tilewright::onnx
