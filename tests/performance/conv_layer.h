// A convolution of one square image, padded to keep its extent but for the stride.
#pragma once

#include <string>

#include "tests/performance/kernel_graph.h"

namespace tilewright::performance {

// Of the models that suites are made of (ResNet-50, MobileNet-v2), by their extents.
struct ConvLayer {
  int64_t in, out, extent, kernel;  // channels; height and width of the image; of the window
  // Alike in both directions; as many groups as channels: depthwise.
  int64_t stride = 1, group = 1;

  // Of the benchmark: "64x56_to_64_k3", channels and extent, then channels and window.
  std::string name() const {
    return std::to_string(in) + "x" + std::to_string(extent) + "_to_" + std::to_string(out) + "_k" +
           std::to_string(kernel) + (stride > 1 ? "_s" + std::to_string(stride) : "") +
           (group > 1 ? "_depthwise" : "");
  }
  // NCHW and OIHW.
  Shape input() const { return {1, in, extent, extent}; }
  Shape weights() const { return {out, in / group, kernel, kernel}; }

  // The layer's node over x and w; counts its operations.
  ir::ValueId conv(KernelGraph& k, ir::ValueId x, ir::ValueId w,
                   ir::Attributes attributes = {}) const {
    const int64_t pad = kernel / 2, result = (extent + 2 * pad - kernel) / stride + 1;
    attributes["pads"] = std::vector<int64_t>{pad, pad, pad, pad};
    attributes["strides"] = std::vector<int64_t>{stride, stride};
    attributes["group"] = group;
    const int64_t products = result * result * out * (in / group) * kernel * kernel;
    k.operations += 2.0 * static_cast<double>(products);
    return k.op("conv", {x, w}, std::move(attributes));
  }
};

// A layer meets values with channels innermost in a model, but not inputs and results: a pool of
// windows of one element stands between, and the layer alone is timed.
inline ir::ValueId between_layers(KernelGraph& k, ir::ValueId x) {
  k.timed = "conv";
  return k.op("max_pool", {x}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}

}  // namespace tilewright::performance
