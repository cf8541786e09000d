#include <cmath>

#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

// Written as exporters write it; the operations counted are those of the two products.
void add_attention() {
  constexpr int64_t kHeads = 12, kWidth = 64;
  for (const int64_t length : {128, 384})
    add_benchmark("attention/heads12_s" + std::to_string(length) + "_d64", [=](KernelGraph& k) {
      const Shape shape{kHeads, length, kWidth};
      k.operations = 4.0 * static_cast<double>(kHeads * length * length * kWidth);
      const ir::ValueId keys =
          k.op("transpose", {k.input(shape)}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
      const ir::ValueId scores =
          k.op("mul", {k.op("matmul", {k.input(shape), keys}),
                       k.number(1 / std::sqrt(static_cast<double>(kWidth)))});
      const ir::ValueId weights = k.op("softmax", {scores}, {{"axis", int64_t{-1}}});
      k.output(k.op("matmul", {weights, k.input(shape)}));
    });
}

}  // namespace tilewright::performance
