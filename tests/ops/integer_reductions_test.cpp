// Reductions of integers whose terms are sums and products: simplification multiplies out what the
// update of the running value is made of, and lanes must still be combined.
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class IntegerReductions : public KernelTest {};

TEST_P(IntegerReductions, OfTermsThatAreMultipliedOut) {
  for (const DType t : {DType::kInt64, DType::kInt32})
    for (const Shape& shape : {Shape{8}, Shape{4, 2}, Shape{3, 5}, Shape{100}})
      for (const char* reduction : {"reduce_prod", "reduce_sum", "reduce_max"}) {
        GraphCall call;
        const ir::ValueId a = call.input(repeated(t, shape, {2, -1, 3, 1, -2})),
                          b = call.input(repeated(t, shape, {1, 2, 1})),
                          three = call.constant(repeated(t, {}, {3}));
        std::vector<int64_t> axes;
        for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
        for (const ir::ValueId term :
             {call.op("neg", {a}), call.op("sub", {b, a}), call.op("mul", {a, b}),
              call.op("add", {call.op("mul", {a, three}), b}), call.op("add", {a, three})})
          call.output(call.op(reduction, {term}, {{"axes", axes}, {"keepdims", int64_t{0}}}));
        expect_equal(call, 0);
      }
}

INSTANTIATE_TEST_SUITE_P(Cpu, IntegerReductions, testing::Values("native", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
