// How far sums of many terms are off: a sum in sequence loses a unit of its own size now and then, for each of its
// terms; runs of terms lose it for each of their number.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class LongSums : public KernelTest {
 protected:
  // The largest error, in units of epsilon times the sum of the terms' sizes.
  static double error_of(const GraphCall& call, double expected) {
    CompiledForm form;
    form.cpu = GetParam();
    auto runs = run_compiled(call.graph, call.inputs, form, {1, 3});
    EXPECT_TRUE(runs.ok());
    if (!runs.ok()) return 0;
    double worst = 0;
    const HostTensor& sums = (*runs)[0][0];
    for (int64_t i = 0; i < sums.size(); ++i)
      worst = std::max(worst, std::abs(element(sums, i) - expected));
    EXPECT_EQ((*runs)[1][0].bytes, sums.bytes);
    return worst / (std::abs(expected) * epsilon(DType::kFloat32));
  }
  static HostTensor filled(const Shape& shape, float value) {
    HostTensor t(DType::kFloat32, shape);
    std::fill_n(t.data<float>(), t.size(), value);
    return t;
  }
};

constexpr double kMostUnits = 24;  // one term after the other: several hundreds

// A tenth is no binary fraction: each addition rounds, for long stretches in the same direction.
TEST_P(LongSums, OfColumns) {
  for (const auto& [rows, columns] :
       {std::pair{1280, 64}, {1283, 48}, {40000, 24}, {40000, 1024}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << columns);
    GraphCall call;
    call.output(call.op("reduce_sum", {call.input(filled({rows, columns}, 0.1F))},
                        {{"axes", std::vector<int64_t>{0}}}));
    EXPECT_LE(error_of(call, rows * double{0.1F}), kMostUnits);
  }
}

// As the variance of a batch: each term differs from what all have in common.
TEST_P(LongSums, OfSquaresOfDifferences) {
  for (const Shape& shape : {Shape{16, 24, 24, 24}, Shape{3, 40, 32, 5}, Shape{64, 8, 8, 96}}) {
    SCOPED_TRACE(to_string(shape));
    GraphCall call;
    const auto x = call.input(filled(shape, 1.1F)), mean = call.input(filled({shape[3]}, 1));
    const auto d = call.op("sub", {x, mean});
    call.output(
        call.op("reduce_sum", {call.op("mul", {d, d})}, {{"axes", std::vector<int64_t>{0, 1, 2}}}));
    const double term = double{1.1F - 1} * (1.1F - 1);
    EXPECT_LE(error_of(call, static_cast<double>(shape[0] * shape[1] * shape[2]) * term),
              kMostUnits);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, LongSums, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
