#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

void transpose(const std::string& name, const Shape& shape, const std::vector<int64_t>& perm) {
  add_benchmark("movement/" + name, [shape, perm](KernelGraph& k) {
    k.output(k.op("transpose", {k.input(shape)}, {{"perm", perm}}));
  });
}
void concat(const std::string& name, const Shape& shape, int64_t axis) {
  add_benchmark("movement/" + name, [shape, axis](KernelGraph& k) {
    k.output(k.op("concat", {k.input(shape), k.input(shape)}, {{"axis", axis}}));
  });
}

}  // namespace

// Results of 64 MiB.
void add_movement() {
  transpose("transpose", {4096, 4096}, {1, 0});
  transpose("transpose_prime", {4093, 4099}, {1, 0});
  transpose("channels_last", {16, 64, 128, 128}, {0, 2, 3, 1});
  transpose("channels_first", {16, 128, 128, 64}, {0, 3, 1, 2});
  transpose("swap_heads", {32, 512, 16, 64}, {0, 2, 1, 3});
  concat("concat_rows", {64, 128, 1024}, 1);
  concat("concat_columns", {128, 128, 512}, 2);
}

}  // namespace tilewright::performance
