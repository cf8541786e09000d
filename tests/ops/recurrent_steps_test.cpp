// Steps large enough for several threads: their phases follow each other, and the results do not
// depend on the number of threads. Weights that only the run knows are laid out before the steps.
#include <gtest/gtest.h>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class RecurrentSteps : public KernelTest {};

constexpr int64_t kSteps = 7, kBatch = 15, kWidth = 150;
const ir::Attributes kAttributes{
    {"activations", std::vector<std::string>{"sigmoid", "tanh", "tanh"}},
    {"alpha", std::vector<double>{0, 0, 0}},
    {"beta", std::vector<double>{0, 0, 0}}};
// Each step adds the rounding of its sums, of at most 4 kWidth terms below 1 / 16, to what it got; the
// gates do not make it grow by more than 4 a step.
constexpr double kBound = 0x1p-24 * 4 * kWidth * 4 * kWidth / 16 * 4 * kSteps;

HostTensor weights(std::mt19937_64& random) {
  HostTensor w = random_tensor(DType::kFloat32, {kWidth, 4 * kWidth}, random);
  for (int64_t i = 0; i < w.size(); ++i) w.data<float>()[i] /= 16;
  return w;
}
void expect_interpreted(const GraphCall& call, const std::string& cpu) {
  auto expected = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  auto runs = run_compiled(call.graph, call.inputs, {true, true, false, cpu}, {1, 2, 3, 5});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (const Tensors& run : *runs)
    for (size_t k = 0; k < run.size(); ++k) {
      EXPECT_LE(difference(run[k], expected->outputs[k]), kBound);
      EXPECT_EQ(run[k].bytes, (*runs)[0][k].bytes);
    }
}

TEST_P(RecurrentSteps, ThreadsShareAStep) {
  for (const bool constant : {true, false}) {
    std::mt19937_64 random(5);
    GraphCall call;
    const ir::ValueId x =
        call.input(random_tensor(DType::kFloat32, {kSteps, kBatch, 4 * kWidth}, random));
    const HostTensor w = weights(random);
    call.output(
        call.op("lstm_steps", {x, constant ? call.constant(w) : call.input(w)}, kAttributes));
    expect_interpreted(call, GetParam());
  }
}

TEST_P(RecurrentSteps, ThreadsShareAStepBackwards) {
  std::mt19937_64 random(6);
  GraphCall call;
  const auto input = [&](int64_t width) {
    return call.input(random_tensor(DType::kFloat32, {kSteps, kBatch, width}, random));
  };
  const ir::ValueId entered = input(4 * kWidth), w = call.input(weights(random)),
                    dy = input(kWidth), cells = input(kWidth);
  call.output(
      call.op("lstm_steps_gradient", {entered, w, dy, ir::kNone, ir::kNone, cells}, kAttributes));
  expect_interpreted(call, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cpus, RecurrentSteps, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
