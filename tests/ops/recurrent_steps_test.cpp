// Steps large enough for several threads: their phases follow each other, and the results do not
// depend on the number of threads.
#include <gtest/gtest.h>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class RecurrentSteps : public KernelTest {};

TEST_P(RecurrentSteps, ThreadsShareAStep) {
  constexpr int64_t kSteps = 7, kBatch = 3, kWidth = 150;
  std::mt19937_64 random(5);
  GraphCall call;
  const ir::ValueId x =
      call.input(random_tensor(DType::kFloat32, {kSteps, kBatch, 4 * kWidth}, random));
  HostTensor weights = random_tensor(DType::kFloat32, {kWidth, 4 * kWidth}, random);
  for (int64_t i = 0; i < weights.size(); ++i) weights.data<float>()[i] /= 16;
  call.output(call.op("lstm_steps", {x, call.constant(weights)},
                      {{"activations", std::vector<std::string>{"sigmoid", "tanh", "tanh"}},
                       {"alpha", std::vector<double>{0, 0, 0}},
                       {"beta", std::vector<double>{0, 0, 0}}}));
  auto expected = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  auto runs = run_compiled(call.graph, call.inputs, {true, true, false, GetParam()}, {1, 2, 3, 5});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  // Each step adds the rounding of its sums, of at most kWidth terms below 1 / 16, to what it got;
  // the gates do not make it grow by more than 4 a step.
  const double bound = 0x1p-24 * kWidth * kWidth / 16 * 4 * kSteps;
  for (const Tensors& run : *runs) {
    EXPECT_LE(difference(run[0], expected->outputs[0]), bound);
    EXPECT_EQ(run[0].bytes, (*runs)[0][0].bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, RecurrentSteps, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
