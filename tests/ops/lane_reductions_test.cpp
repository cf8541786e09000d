// Reductions whose lanes are easily forgotten: terms that are the same in all of them, and integers
// whose sums and products simplification multiplies out.
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class LaneReductions : public KernelTest {};

TEST_P(LaneReductions, OfTermsThatAreMultipliedOut) {
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

// Sums of few terms for two rows of columns each, where what a tile adds up beyond a row would be the next row's.
TEST_P(LaneReductions, OfRowsWhoseEndsAreInsideOfVectors) {
  for (const bool logarithm : {false, true})
    for (const Shape& rows : {Shape{8, 20}, Shape{6, 28}, Shape{4, 12}, Shape{3, 20}, Shape{2, 9}})
      for (const int64_t terms : {2, 4, 7}) {
        const Shape shape{rows[0], rows[1], terms};
        GraphCall call;
        const auto dy = call.input(random(DType::kFloat32, shape)),
                   x = call.input(random(DType::kFloat32, shape)),
                   y = call.op(logarithm ? "log_softmax" : "softmax", {x});
        call.output(call.op("softmax_gradient", {dy, y}, {{"logarithm", int64_t{logarithm}}}));
        expect_equal(call, 16.0 * static_cast<double>(terms));
        if (HasFailure()) return;
      }
}

TEST_P(LaneReductions, OfTermsThatAreTheSameInAllLanes) {
  for (const DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64,
                        DType::kInt32, DType::kInt8})
    for (const char* reduction : {"reduce_sum", "reduce_prod", "reduce_max"}) {
      GraphCall call;
      for (const int64_t n : {2, 3, 4, 8, 16, 17, 32, 64}) {
        const ir::ValueId one = call.input(repeated(t, {1}, {1})),
                          two = call.input(repeated(t, {2, 1}, {1, -1}));
        auto reduced = [&](ir::ValueId x, const Shape& shape, std::vector<int64_t> axes) {
          const HostTensor extents = repeated(DType::kInt64, {static_cast<int64_t>(shape.size())},
                                              std::vector<double>(shape.begin(), shape.end()));
          const ir::ValueId wide = call.op("expand", {x, call.constant(extents)});
          call.output(call.op(reduction, {wide}, {{"axes", axes}, {"keepdims", int64_t{0}}}));
        };
        reduced(one, {n}, {0});
        reduced(one, {n, 2}, {0, 1});
        reduced(two, {2, n}, {0, 1});
        reduced(two, {2, n}, {1});
      }
      expect_equal(call, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LaneReductions, testing::Values("native", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
