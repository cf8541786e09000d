// A convolution of one square image, padded to keep its extent but for the stride.
#pragma once

#include <string>
#include <vector>

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
  Shape input(int64_t images = 1) const { return {images, in, extent, extent}; }
  Shape weights() const { return {out, in / group, kernel, kernel}; }
  int64_t pad() const { return kernel / 2; }
  int64_t result_extent() const { return (extent + 2 * pad() - kernel) / stride + 1; }
  Shape result(int64_t images) const { return {images, out, result_extent(), result_extent()}; }
  // Of one image: multiplications and additions.
  double operations() const {
    const int64_t products =
        result_extent() * result_extent() * out * (in / group) * kernel * kernel;
    return 2.0 * static_cast<double>(products);
  }

  // The layer's node over x and w; counts its operations.
  ir::ValueId conv(KernelGraph& k, ir::ValueId x, ir::ValueId w,
                   ir::Attributes attributes = {}) const {
    attributes["pads"] = std::vector<int64_t>{pad(), pad(), pad(), pad()};
    attributes["strides"] = std::vector<int64_t>{stride, stride};
    attributes["group"] = group;
    k.operations += operations();
    return k.op("conv", {x, w}, std::move(attributes));
  }
};

// Each different convolution of ResNet-50 for 224 x 224 (He et al. 2016, table 1; the stride of a
// bottleneck in its 3 x 3 layer).
inline const std::vector<ConvLayer>& resnet50_layers() {
  static const std::vector<ConvLayer> layers{
      {3, 64, 224, 7, 2},     {64, 64, 56, 1},    {64, 64, 56, 3},       {64, 256, 56, 1},
      {256, 64, 56, 1},       {256, 128, 56, 1},  {128, 128, 56, 3, 2},  {128, 512, 28, 1},
      {256, 512, 56, 1, 2},   {512, 128, 28, 1},  {128, 128, 28, 3},     {512, 256, 28, 1},
      {256, 256, 28, 3, 2},   {256, 1024, 14, 1}, {512, 1024, 28, 1, 2}, {1024, 256, 14, 1},
      {256, 256, 14, 3},      {1024, 512, 14, 1}, {512, 512, 14, 3, 2},  {512, 2048, 7, 1},
      {1024, 2048, 14, 1, 2}, {2048, 512, 7, 1},  {512, 512, 7, 3},
  };
  return layers;
}

// A layer meets values with channels innermost in a model, but not inputs and results: a pool of
// windows of one element stands between, and the layer alone is timed.
inline ir::ValueId between_layers(KernelGraph& k, ir::ValueId x, const char* timed = "conv") {
  k.timed = timed;
  return k.op("max_pool", {x}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}

}  // namespace tilewright::performance
