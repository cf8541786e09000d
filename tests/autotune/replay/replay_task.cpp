#include "tests/autotune/replay/replay_task.h"

#include <cmath>

#include "frontends/compiler/compiler.h"
#include "passes/price_decisions.h"
#include "tests/performance/conv_layer.h"

namespace tilewright::autotune {

namespace {

using ir::ValueId;
using performance::ConvLayer;
using performance::KernelGraph;

void layer(KernelGraph& k, const ConvLayer& c) {
  const ValueId x = performance::between_layers(k, k.input(c.input()));
  const ValueId y = k.op("add", {c.conv(k, x, k.weight(c.weights())), k.weight({c.out, 1, 1})});
  k.output(performance::between_layers(k, k.op("relu", {y})));
}
void int8_layer(KernelGraph& k, const ConvLayer& c) {
  const ValueId x = performance::between_layers(k, k.input(c.input(), DType::kUInt8));
  k.output(performance::between_layers(
      k, c.conv(k, x, k.weight(c.weights(), DType::kInt8), {{"out_dtype", std::string("i32")}})));
}
void product(KernelGraph& k, int64_t rows, int64_t columns, int64_t depth) {
  k.output(k.op("matmul", {k.input({rows, depth}), k.weight({depth, columns})}));
}
void attention(KernelGraph& k) {
  const Shape shape{2, 128, 64};
  const ValueId keys =
      k.op("transpose", {k.input(shape)}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const ValueId scores = k.op("mul", {k.op("matmul", {k.input(shape), keys}), k.number(0.125)});
  const ValueId weights = k.op("softmax", {scores}, {{"axis", int64_t{-1}}});
  k.output(k.op("matmul", {weights, k.input(shape)}));
}
void gelu(KernelGraph& k) {
  const ValueId x = k.input({100, 777}), half = k.op("mul", {x, k.number(0.5)});
  const ValueId erf = k.op("erf", {k.op("mul", {x, k.number(0.70710678)})});
  k.output(k.op("mul", {half, k.op("add", {erf, k.number(1)})}));
}
void softmax(KernelGraph& k, const Shape& shape) {
  k.output(k.op("softmax", {k.input(shape)}, {{"axis", int64_t{-1}}}));
}
void layer_norm(KernelGraph& k, const Shape& shape) {
  k.output(k.op("layer_norm", {k.input(shape), k.weight({shape[1]}), k.weight({shape[1]})},
                {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
}
void column_sum(KernelGraph& k, const Shape& shape) {
  k.output(k.op("reduce_sum", {k.input(shape)},
                {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}));
}
void transpose(KernelGraph& k, const Shape& shape) {
  k.output(k.op("transpose", {k.input(shape)}, {{"perm", std::vector<int64_t>{2, 0, 1}}}));
}
void average_pool(KernelGraph& k) {
  k.timed = "average_pool";
  k.output(k.op("average_pool", {k.input({1, 64, 56, 56})},
                {{"kernel_shape", std::vector<int64_t>{3, 3}},
                 {"strides", std::vector<int64_t>{2, 2}},
                 {"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
}

}  // namespace

// Shapes for which the usual schedule is not the best one, so that there is something to find; those of
// well-known models leave next to nothing. Code for AVX2 runs on any newer CPU, too, and its rules were
// tuned less by hand.
const std::vector<ReplayTask>& replay_tasks() {
  constexpr const char *kHere = "native", *kAvx2 = "x86-64-v3";
  static const std::vector<ReplayTask> tasks{
      {"conv_1x1", "tile", kAvx2, 1, [](KernelGraph& k) { layer(k, {320, 64, 7, 1}); }},
      {"conv_5x5", "window", kHere, 2, [](KernelGraph& k) { layer(k, {3, 32, 64, 5, 2}); }},
      {"winograd", "winograd", kHere, 2, [](KernelGraph& k) { layer(k, {64, 64, 14, 3}); }},
      {"depthwise", "depthwise", kHere, 1,
       [](KernelGraph& k) { layer(k, {72, 72, 56, 5, 2, 72}); }},
      {"conv_int8", "int8", kAvx2, 1, [](KernelGraph& k) { int8_layer(k, {32, 32, 28, 3}); }},
      {"matmul", "tile", kHere, 1, [](KernelGraph& k) { product(k, 50, 200, 300); }},
      {"matmul_few_rows", "few_rows", kAvx2, 1, [](KernelGraph& k) { product(k, 5, 300, 512); }},
      {"attention", "attention", kAvx2, 1, attention},
      {"softmax", "rows", kHere, 1, [](KernelGraph& k) { softmax(k, {3000, 21}); }},
      {"layer_norm", "rows", kHere, 1, [](KernelGraph& k) { layer_norm(k, {500, 100}); }},
      {"column_sum", "columns", kAvx2, 1, [](KernelGraph& k) { column_sum(k, {2048, 96}); }},
      {"gelu", "elementwise", kAvx2, 1, gelu},
      {"transpose", "squares", kHere, 1, [](KernelGraph& k) { transpose(k, {37, 53, 111}); }},
      {"average_pool", "pool", kHere, 1, average_pool},
  };
  return tasks;
}

Result<ReplayKernel> kernel_of(const ReplayTask& task) {
  ReplayKernel found;
  task.build(found.source);
  CompileOptions options;
  options.cpu = task.cpu;
  options.schedule_threads = task.threads;
  TW_ASSIGN(found.lower, lower_options(options));
  TW_ASSIGN(found.graph, passes::lower_graph(found.source.graph(), found.lower));
  passes::LowerOptions lower = found.lower;
  double most = 0;
  lower.find_schedule =
      [&](const ir::Kernel& k,
          const std::set<std::string>& constants) -> std::optional<passes::Trace> {
    const auto cost = passes::cost_of(k, constants, found.lower);
    const bool named = k.name.find(found.source.timed) != std::string::npos;
    if (!cost.ok() || !named || cost->total() <= most) return std::nullopt;
    most = cost->total();
    found.kernel = k;
    found.constants = constants;
    return std::nullopt;
  };
  TW_ASSIGN(const ir::Program program, passes::lower_fused(found.graph, lower));
  (void)program;
  if (most == 0) return invalid("no kernel is named after '" + found.source.timed + "'", task.name);
  return found;
}

}  // namespace tilewright::autotune
