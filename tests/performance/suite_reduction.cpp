#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

const Shape kShape{16384, 1024};  // 64 MiB of f32

// Along contiguous rows, down columns, over both, and a tall narrow matrix as the gradient of a
// bias has it; then the reductions that have several passes over a row, at two lengths.
ir::ValueId sum(KernelGraph& k, const Shape& shape, std::vector<int64_t> axes) {
  return k.op("reduce_sum", {k.input(shape)},
              {{"axes", std::move(axes)}, {"keepdims", int64_t{0}}});
}
void softmax(const std::string& name, const Shape& shape) {
  add_benchmark("reduction/" + name, [shape](KernelGraph& k) {
    k.output(k.op("softmax", {k.input(shape)}, {{"axis", int64_t{-1}}}));
  });
}
void layer_norm(const std::string& name, const Shape& shape) {
  add_benchmark("reduction/" + name, [shape](KernelGraph& k) {
    k.output(k.op("layer_norm", {k.input(shape), k.weight({shape[1]}), k.weight({shape[1]})},
                  {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
  });
}

}  // namespace

void add_reduction() {
  add_benchmark("reduction/row_sum", [](KernelGraph& k) { k.output(sum(k, kShape, {1})); });
  add_benchmark("reduction/column_sum", [](KernelGraph& k) { k.output(sum(k, kShape, {0})); });
  add_benchmark("reduction/bias_sum", [](KernelGraph& k) { k.output(sum(k, {262144, 64}, {0})); });
  add_benchmark("reduction/sum_of_all", [](KernelGraph& k) { k.output(sum(k, kShape, {0, 1})); });
  softmax("softmax", kShape);
  softmax("softmax_128", {131072, 128});
  layer_norm("layer_norm", kShape);
  layer_norm("layer_norm_256", {65536, 256});
}

}  // namespace tilewright::performance
