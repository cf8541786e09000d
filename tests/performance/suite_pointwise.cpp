#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

const Shape kShape{16, 1024, 1024};  // 64 MiB of f32

// Operators on each element: from those that memory bounds alone to those with work for the units.
void add(const std::string& name, ir::ValueId (*formula)(KernelGraph&, ir::ValueId)) {
  add_benchmark("pointwise/" + name,
                [formula](KernelGraph& k) { k.output(formula(k, k.input(kShape))); });
}

}  // namespace

void add_pointwise() {
  using ir::ValueId;
  add("add", [](KernelGraph& k, ValueId x) { return k.op("add", {x, k.input(kShape)}); });
  add("relu", [](KernelGraph& k, ValueId x) { return k.op("relu", {x}); });
  add("mul_add_chain", [](KernelGraph& k, ValueId x) {
    for (int i = 0; i < 4; ++i) x = k.op("add", {k.op("mul", {x, k.number(0.5)}), k.number(0.25)});
    return x;
  });
  add("gelu", [](KernelGraph& k, ValueId x) {
    const ValueId half = k.op("mul", {x, k.number(0.5)});
    const ValueId erf = k.op("erf", {k.op("mul", {x, k.number(0.70710678)})});
    return k.op("mul", {half, k.op("add", {erf, k.number(1)})});
  });
  add("exp", [](KernelGraph& k, ValueId x) { return k.op("exp", {x}); });
}

}  // namespace tilewright::performance
