// Products of bf16 with weights, by dot product instructions and without: against the interpreter,
// which sums in f32, over sizes that leave tails.
#include <gtest/gtest.h>

#include "ir/loops/rewrite.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class Bf16Products : public KernelTest {
 protected:
  HostTensor numbers(const Shape& shape) { return random_tensor(DType::kBFloat16, shape, random_); }
  GraphCall products(int64_t n) {
    GraphCall call;
    for (const int64_t k : {2, 7, 38})
      for (const int64_t m : {1, 3, 17})
        call.output(
            call.op("matmul", {call.input(numbers({m, k})), call.constant(numbers({k, n}))}));
    return call;
  }
};

TEST_P(Bf16Products, EqualTheInterpreter) {
  for (const int64_t n : {1, 16, 17, 67}) {
    SCOPED_TRACE("n = " + std::to_string(n));
    const GraphCall call = products(n);
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    auto runs = run_compiled(call.graph, call.inputs, {true, true, true, GetParam()}, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    // Sums of at most 38 products of at most 1 in f32, each then rounded to bf16: two neighbours.
    for (const Tensors& run : *runs)
      for (size_t p = 0; p < run.size(); ++p)
        for (int64_t i = 0; i < run[p].size(); ++i) {
          const double expected = element(oracle->outputs[p], i);
          EXPECT_NEAR(element(run[p], i), expected,
                      0x1p-8 * std::abs(expected) + 38 * 38 * 0x1p-24);
        }
  }
}

TEST_P(Bf16Products, TakeTheInstructionWhereThereIsOne) {
  auto program = lower_graph_for(products(17).graph, {true, true, true, GetParam()});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  int with_dots = 0;
  for (const ir::Kernel& k : program->kernels) {
    bool any = false;
    ir::for_each_expr(k.body, [&](const ir::Expr& e) { any |= e.kind() == ir::NodeKind::kDot; });
    with_dots += any;
  }
  // An odd number of terms is left to f32.
  const bool instruction = std::string(GetParam()) == "cooperlake";
  EXPECT_EQ(with_dots > 0, instruction);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Bf16Products, testing::Values("cooperlake", "x86-64-v4", "x86-64-v3"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
