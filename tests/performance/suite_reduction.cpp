#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

const Shape kShape{16384, 1024};  // 64 MiB of f32

ir::ValueId sum(KernelGraph& k, int64_t axis) {
  return k.op("reduce_sum", {k.input(kShape)},
              {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{0}}});
}

}  // namespace

void add_reduction() {
  add_benchmark("reduction/row_sum", [](KernelGraph& k) { k.output(sum(k, 1)); });
  add_benchmark("reduction/column_sum", [](KernelGraph& k) { k.output(sum(k, 0)); });
  add_benchmark("reduction/softmax", [](KernelGraph& k) {
    k.output(k.op("softmax", {k.input(kShape)}, {{"axis", int64_t{-1}}}));
  });
  add_benchmark("reduction/layer_norm", [](KernelGraph& k) {
    k.output(k.op("layer_norm", {k.input(kShape), k.weight({kShape[1]}), k.weight({kShape[1]})},
                  {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
  });
}

}  // namespace tilewright::performance
