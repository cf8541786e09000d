#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

// One product for all steps and a chain of small ones: latency, not throughput.
void add_recurrent() {
  constexpr int64_t kHidden = 128, kSteps = 64, kGates = 4 * kHidden;
  add_benchmark("recurrent/lstm_h128_s64", [](KernelGraph& k) {
    k.operations = 2.0 * kSteps * 2 * kHidden * kGates;  // of the inputs and of the state
    const ir::ValueId product =
        k.op("matmul", {k.input({kSteps, kHidden}), k.weight({kHidden, kGates})});
    const ir::ValueId projected =
        k.reshape(k.op("add", {product, k.weight({kGates})}), {kSteps, 1, kGates});
    const std::vector<std::string> activations{"sigmoid", "tanh", "tanh"};
    const std::vector<double> none(3, 0);
    k.output(k.op("lstm_steps", {projected, k.weight({kHidden, kGates})},
                  {{"activations", activations}, {"alpha", none}, {"beta", none}}, 3));
  });
}

}  // namespace tilewright::performance
