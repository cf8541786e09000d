#include "tests/performance/conv_layer.h"
#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

// Each different convolution of MobileNet-v2 for 224 x 224 (Sandler et al. 2018, table 2).
const std::vector<ConvLayer> kMobileNetV2{
    {3, 32, 224, 3, 2},        {32, 32, 112, 3, 1, 32},   {32, 16, 112, 1},
    {16, 96, 112, 1},          {96, 96, 112, 3, 2, 96},   {96, 24, 56, 1},
    {24, 144, 56, 1},          {144, 144, 56, 3, 1, 144}, {144, 24, 56, 1},
    {144, 144, 56, 3, 2, 144}, {144, 32, 28, 1},          {32, 192, 28, 1},
    {192, 192, 28, 3, 1, 192}, {192, 32, 28, 1},          {192, 192, 28, 3, 2, 192},
    {192, 64, 14, 1},          {64, 384, 14, 1},          {384, 384, 14, 3, 1, 384},
    {384, 64, 14, 1},          {384, 96, 14, 1},          {96, 576, 14, 1},
    {576, 576, 14, 3, 1, 576}, {576, 96, 14, 1},          {576, 576, 14, 3, 2, 576},
    {576, 160, 7, 1},          {160, 960, 7, 1},          {960, 960, 7, 3, 1, 960},
    {960, 160, 7, 1},          {960, 320, 7, 1},          {320, 1280, 7, 1},
};

ir::ValueId layer(KernelGraph& k, const ConvLayer& c, ir::ValueId x) {
  const ir::ValueId y = c.conv(k, x, k.weight(c.weights()));
  return k.op("relu", {k.op("add", {y, k.weight({c.out, 1, 1})})});
}

void add_layers(const std::string& model, const std::vector<ConvLayer>& layers) {
  for (const ConvLayer& c : layers)
    add_benchmark("conv/" + model + "_" + c.name(), [c](KernelGraph& k) {
      ir::ValueId x = k.input(c.input());
      if (c.in != 3) x = between_layers(k, x);  // the first layer reads the image itself
      k.output(between_layers(k, layer(k, c, x)));
    });
}

}  // namespace

void add_convolution() {
  add_layers("resnet50", resnet50_layers());
  add_layers("mobilenet_v2", kMobileNetV2);
  const ConvLayer alone{64, 64, 56, 3};  // reads and writes the rows of channels that callers have
  add_benchmark("conv/alone_" + alone.name(),
                [alone](KernelGraph& k) { k.output(layer(k, alone, k.input(alone.input()))); });
}

}  // namespace tilewright::performance
