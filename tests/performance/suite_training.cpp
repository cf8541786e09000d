#include <iterator>

#include "tests/performance/conv_layer.h"
#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

constexpr int64_t kImages = 16;

// Both operands are known at the run alone; n and t: as it lies, and transposed.
void add_products() {
  for (const int64_t n : {512, 1024, 2048, 509, 1021, 2039})
    for (const char* form : {"nn", "nt", "tn"})
      add_benchmark("training/product_" + std::string(form) + "_" + std::to_string(n),
                    [n, form](KernelGraph& k) {
                      k.operations = 2.0 * static_cast<double>(n * n * n);
                      k.output(k.op("matmul", {k.input({n, n}), k.input({n, n})},
                                    {{"trans_a", int64_t{form[0] == 't'}},
                                     {"trans_b", int64_t{form[1] == 't'}}}));
                    });
}

ir::Attributes window(const ConvLayer& c, int64_t cut = 0) {
  const int64_t pad = c.pad();
  return {{"pads", std::vector<int64_t>{pad, pad, pad + cut, pad + cut}},
          {"strides", std::vector<int64_t>{c.stride, c.stride}}};
}

void weights_gradient(KernelGraph& k, const ConvLayer& c) {
  constexpr const char* kTimed = "conv_weights_gradient";
  k.operations = kImages * c.operations();
  ir::Attributes attributes = window(c);
  attributes["kernel_shape"] = std::vector<int64_t>{c.kernel, c.kernel};
  const ir::ValueId dy = between_layers(k, k.input(c.result(kImages)), kTimed);
  // Windows of one element take what they read first, as the gradient of a convolution has it.
  const bool apart = c.kernel == 1 && c.stride > 1;
  if (apart) attributes["strides"] = std::vector<int64_t>{1, 1};
  const Shape read =
      apart ? Shape{kImages, c.in, c.result_extent(), c.result_extent()} : c.input(kImages);
  const ir::ValueId x = between_layers(k, k.input(read), kTimed);
  k.output(k.op(kTimed, {dy, x}, std::move(attributes)));
}

// The transposed convolution, cropped to the operand's extent.
void input_gradient(KernelGraph& k, const ConvLayer& c) {
  constexpr const char* kTimed = "conv_transpose";
  k.operations = kImages * c.operations();
  const int64_t whole = (c.result_extent() - 1) * c.stride + c.kernel - 2 * c.pad();
  const ir::ValueId dy = between_layers(k, k.input(c.result(kImages)), kTimed);
  const ir::ValueId dx = k.op(kTimed, {dy, k.input(c.weights())}, window(c, whole - c.extent));
  k.output(between_layers(k, dx, kTimed));
}

void add_layers() {
  for (const ConvLayer& c : resnet50_layers()) {
    const std::string name = "resnet50_" + c.name();
    add_benchmark("training/weights_" + name, [c](KernelGraph& k) { weights_gradient(k, c); });
    if (c.in != 3)  // nobody asks for the image's
      add_benchmark("training/inputs_" + name, [c](KernelGraph& k) { input_gradient(k, c); });
  }
}

// Adam over 64 MB of parameters, as frontends/train/optimizers writes it: 28 bytes a parameter.
void adam(KernelGraph& k) {
  const Shape shape{int64_t{16} << 20};
  const auto p = k.input(shape), g = k.input(shape), m = k.input(shape), v = k.input(shape);
  const auto times = [&](ir::ValueId a, double f) { return k.op("mul", {a, k.number(f)}); };
  const auto add = [&](ir::ValueId a, ir::ValueId b) { return k.op("add", {a, b}); };
  const auto first = add(times(m, 0.9), times(g, 0.1)),
             second = add(times(v, 0.999), times(k.op("mul", {g, g}), 0.001));
  const auto root = add(k.op("sqrt", {k.op("abs", {second})}), k.number(1e-8));
  k.update(p, k.op("sub", {p, times(k.op("div", {first, root}), 1e-3)}));
  k.update(m, first);
  k.update(v, second);
}

}  // namespace

void add_training() {
  add_products();
  add_layers();
  add_benchmark("training/adam_64MB", adam);
}

}  // namespace tilewright::performance
