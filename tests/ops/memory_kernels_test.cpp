// Kernels that memory holds up: transposes, sums over rows and of everything, results stored past
// the caches. Compiled against interpreted, for any number of threads, over sizes that leave tails.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class MemoryKernels : public KernelTest {
 protected:
  void expect_equal(const GraphCall& call, double roundings) {
    KernelTest::expect_equal(call, roundings, {{}, {.small_caches = true}});
  }
  static ir::Attributes over(std::vector<int64_t> axes) {
    return {{"axes", std::move(axes)}, {"keepdims", int64_t{0}}};
  }
};

TEST_P(MemoryKernels, TransposesOfEveryWidth) {
  for (const DType t : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt64}) {
    GraphCall call;
    for (const int64_t m : {1, 5, 16, 67, 131})
      for (const int64_t n : {4, 8, 17, 64, 149})
        call.output(call.op("transpose", {call.input(random(t, {m, n}))},
                            {{"perm", std::vector<int64_t>{1, 0}}}));
    expect_equal(call, 0);
  }
}

// Rows of results that have pages of their own; short and long rows that are read.
TEST_P(MemoryKernels, TransposesToLongRows) {
  GraphCall call;
  for (const int64_t m : {1040, 1031})
    for (const int64_t n : {8, 24, 37, 64, 150, 259})
      call.output(call.op("transpose", {call.input(random(DType::kFloat32, {m, n}))},
                          {{"perm", std::vector<int64_t>{1, 0}}}));
  for (const Shape& shape : {Shape{2, 36, 32, 19}, Shape{3, 1040, 5, 31}})
    call.output(call.op("transpose", {call.input(random(DType::kFloat32, shape))},
                        {{"perm", std::vector<int64_t>{0, 3, 1, 2}}}));
  expect_equal(call, 0);
}

TEST_P(MemoryKernels, TransposesOfFourDimensions) {
  GraphCall call;
  for (const std::vector<int64_t>& perm :
       {std::vector<int64_t>{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 2, 1, 3}, {3, 1, 2, 0}, {2, 3, 0, 1}})
    for (const Shape& shape : {Shape{2, 16, 7, 9}, Shape{3, 37, 8, 20}})
      call.output(
          call.op("transpose", {call.input(random(DType::kFloat32, shape))}, {{"perm", perm}}));
  expect_equal(call, 0);
}

// Their lines are shorter than vectors, but run on.
TEST_P(MemoryKernels, ReductionsOfPlanes) {
  GraphCall call;
  for (const Shape& shape : {Shape{2, 17, 7, 7}, Shape{1, 131, 14, 14}, Shape{3, 1, 1, 53},
                             Shape{5, 3, 61, 1}, Shape{1, 2, 113, 127}})
    for (const DType t : {DType::kFloat32, DType::kInt32}) {
      const auto x = call.input(random(t, shape));
      for (const char* op : {"reduce_sum", "reduce_max", "reduce_mean"})
        call.output(call.op(op, {x}, over({2, 3})));
      call.output(call.op("reduce_sum", {x}, over({1, 2, 3})));
      call.output(call.op("reduce_sum", {x}, over({1, 3})));
    }
  expect_equal(call, 2e4);
}

// Larger than the second cache: tasks pad what they read, for several rows of results.
TEST_P(MemoryKernels, PaddedCopiesOfRows) {
  for (const int64_t stride : {1, 2})
    for (const int64_t lines : {96, 89}) {
      GraphCall call;
      const auto x = call.input(random(DType::kFloat32, {1, 16, lines, 101})),
                 w = call.constant(random(DType::kFloat32, {16, 1, 3, 3}));
      call.output(call.op("conv", {x, w},
                          {{"group", int64_t{16}},
                           {"pads", std::vector<int64_t>{1, 2, 2, 1}},
                           {"strides", std::vector<int64_t>{stride, stride}}}));
      expect_equal(call, 20);
      if (HasFailure()) return;
    }
}

TEST_P(MemoryKernels, TransposeWithArithmetic) {
  GraphCall call;
  const auto x = call.input(random(DType::kFloat32, {35, 70})),
             y = call.input(random(DType::kFloat32, {70, 35}));
  const auto turned = call.op("transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  call.output(call.op("relu", {call.op("add", {turned, y})}));
  expect_equal(call, 2);
}

TEST_P(MemoryKernels, SumsOverRows) {
  GraphCall call;
  for (const Shape& shape : {Shape{97, 1}, Shape{64, 10}, Shape{67, 131}, Shape{33, 1024}})
    call.output(call.op("reduce_sum", {call.input(random(DType::kFloat32, shape))}, over({0})));
  call.output(call.op("reduce_max", {call.input(random(DType::kFloat32, {3, 47, 70}))}, over({1})));
  call.output(
      call.op("reduce_mean", {call.input(random(DType::kFloat64, {2, 7, 7, 53}))}, over({1, 2})));
  call.output(call.op("reduce_sum", {call.input(random(DType::kInt32, {65, 37}))}, over({0})));
  call.output(
      call.op("reduce_sum", {call.input(random(DType::kFloat32, {3, 7, 33, 300}))}, over({2})));
  expect_equal(call, 200);
}

TEST_P(MemoryKernels, LargeSumsAreCutInRuns) {
  GraphCall call;
  const auto prime = call.input(random(DType::kFloat32, {1031, 257})),
             even = call.input(random(DType::kFloat32, {4096, 65}));
  for (const auto x : {prime, even}) {
    call.output(call.op("reduce_sum", {x}, over({0})));
    call.output(call.op("reduce_max", {x}, over({0})));
    call.output(call.op("reduce_sum", {x}, over({0, 1})));
  }
  call.output(call.op("reduce_max", {call.input(random(DType::kFloat32, {262147}))}, over({0})));
  expect_equal(call, 270000);
}

TEST_P(MemoryKernels, RowsAndFunctionsStoredPastTheCaches) {
  GraphCall call;
  for (const Shape& shape : {Shape{5, 1024}, Shape{33, 130}, Shape{7, 37}}) {
    const auto x = call.input(random(DType::kFloat32, shape));
    call.output(call.op("softmax", {x}, {{"axis", int64_t{-1}}}));
    call.output(call.op("softmax", {x}, {{"axis", int64_t{0}}}));
    // Of one element each, over rows with a tail.
    const ir::ValueId ones = call.input(random(DType::kFloat32, {2, 26, 100, 1}));
    call.output(call.op("softmax", {ones}, {{"axis", int64_t{-1}}}));
    call.output(call.op("layer_norm", {x}, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
    call.output(call.op("exp", {x}));
    call.output(call.op("erf", {call.op("mul", {x, x})}));
    call.output(call.op("concat", {x, x}, {{"axis", int64_t{1}}}));
  }
  expect_equal(call, 1100);
}

TEST_P(MemoryKernels, LongProductsOfFewResultsAreCutInRuns) {
  GraphCall call;
  for (const int64_t terms : {16411, 16384}) {
    const auto wide = call.constant(random(DType::kFloat32, {terms, 37})),
               narrow = call.input(random(DType::kFloat32, {terms, 16})),
               bias = call.constant(random(DType::kFloat32, {37}));
    for (const int64_t rows : {1, 3, 8}) {
      const auto x = call.input(random(DType::kFloat32, {rows, terms}));
      call.output(call.op("relu", {call.op("add", {call.op("matmul", {x, wide}), bias})}));
      call.output(call.op("matmul", {x, narrow}));
    }
  }
  expect_equal(call, 16500);
}

// Their vectors are combined at once, and what is no number stays none.
TEST_P(MemoryKernels, RowsOfFewVectors) {
  GraphCall call;
  for (const int64_t n : {4, 8, 16, 48, 64, 128, 144}) {
    const auto x = call.input(random(DType::kFloat32, {37, n})),
               holes = call.input(repeated(DType::kFloat32, {37, n},
                                           {1, 3, -2, 0.5, -HUGE_VAL, 7, -7, 0, 11, NAN, 0.25}));
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) {
      call.output(call.op(op, {x}, over({1})));
      call.output(call.op(op, {holes}, over({1})));
    }
    for (const auto v : {x, holes}) call.output(call.op("softmax", {v}, {{"axis", int64_t{-1}}}));
    call.output(call.op("layer_norm", {x}, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
    call.output(call.op("reduce_max", {call.input(random(DType::kInt8, {5, n}))}, over({1})));
    call.output(call.op("reduce_sum", {call.input(random(DType::kInt64, {5, n}))}, over({1})));
  }
  expect_equal(call, 300);
}

// Many rows that are shorter than a vector: a row in each lane, in full vectors and tails.
TEST_P(MemoryKernels, ShortRows) {
  for (const DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    GraphCall call;
    for (const int64_t n : {2, 3, 5, 8, 13})
      for (const Shape& shape : {Shape{128, n}, Shape{2, 131, 1, n}}) {
        const auto x = call.input(random(t, shape)), y = call.input(random(t, {n}));
        for (const char* op : {"softmax", "log_softmax"})
          call.output(call.op(op, {call.op("mul", {x, y})}, {{"axis", int64_t{-1}}}));
        call.output(call.op("layer_norm", {x, y}, {{"axis", int64_t{-1}}, {"epsilon", 1e-3}}));
        call.output(call.op("reduce_sum", {call.op("mul", {x, x})}, over({-1})));
        call.output(call.op("reduce_max", {x}, over({-1})));
      }
    expect_equal(call, 300);
  }
}

// Several rows at a time, the last of them too few, alone and among axes of one row each.
TEST_P(MemoryKernels, RowsInGroups) {
  GraphCall call;
  for (const Shape& shape : {Shape{131, 70}, Shape{4, 33, 50}, Shape{37, 67, 1, 131},
                             Shape{128, 64}, Shape{1021, 7}, Shape{37, 1000}, Shape{34, 1, 197}}) {
    const auto x = call.input(random(DType::kFloat32, shape)),
               y = call.input(random(DType::kFloat32, {shape.back()}));
    for (const char* op : {"softmax", "log_softmax"})
      call.output(call.op(op, {call.op("mul", {x, y})}, {{"axis", int64_t{-1}}}));
    call.output(call.op("layer_norm", {x, y}, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
    const auto mean = call.op("reduce_mean", {x}, {{"axes", std::vector<int64_t>{-1}}});
    call.output(call.op("tanh", {call.op("sub", {x, mean})}));
  }
  expect_equal(call, 1100);
}

TEST_P(MemoryKernels, ExtremesOfRowsWithNaN) {
  GraphCall call;
  for (const Shape& shape : {Shape{64, 2}, Shape{67, 16}, Shape{131, 37}, Shape{33, 515}})
    for (const DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16})
      for (const char* op : {"reduce_max", "reduce_min"}) {
        std::vector<double> values(1117, 1.5);  // rows with NaN here and there, and none
        for (size_t i = 0; i < values.size(); i += 3) values[i] = -static_cast<double>(i);
        values[5] = values[700] = NAN;
        values[901] = HUGE_VAL;
        call.output(call.op(op, {call.input(repeated(t, shape, values))}, over({-1})));
      }
  expect_equal(call, 0);
}

// Their sign counts, in whole vectors, their tails and along columns.
TEST_P(MemoryKernels, ExtremesOfBytes) {
  GraphCall call;
  for (const DType t : {DType::kUInt8, DType::kInt8, DType::kUInt16, DType::kInt16, DType::kUInt32,
                        DType::kInt32, DType::kUInt64, DType::kInt64})
    for (const Shape& shape : {Shape{5, 3}, Shape{7, 64}, Shape{3, 131}}) {
      const auto x = call.input(random_bytes(t, shape, random_));
      for (const char* op : {"reduce_max", "reduce_min"})
        for (const int64_t axis : {0, 1}) call.output(call.op(op, {x}, over({axis})));
    }
  expect_equal(call, 0);
}

// The maximum passes over NaN; all of the row is NaN all the same, other rows are as ever.
TEST_P(MemoryKernels, SoftmaxOfRowsWithNaN) {
  GraphCall call;
  for (const int64_t columns : {1, 5, 16, 131, 515, 1024})
    for (const char* op : {"softmax", "log_softmax"}) {
      std::vector<double> values(static_cast<size_t>(columns) * 7);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 101) - 50;
      auto row = [&](int64_t r) { return values.begin() + r * columns; };
      row(1)[0] = row(2)[columns - 1] = row(3)[columns / 2] = NAN;
      std::fill(row(4), row(5), NAN);
      std::fill(row(5), row(6), -HUGE_VAL);
      row(6)[columns / 2] = HUGE_VAL;
      call.output(call.op(op, {call.input(repeated(DType::kFloat32, {7, columns}, values))},
                          {{"axis", int64_t{-1}}}));
    }
  expect_equal(call, 1100);
}

INSTANTIATE_TEST_SUITE_P(Cpus, MemoryKernels,
                         testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
