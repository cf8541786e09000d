// Extremes and their places: compiled equals interpreted, with ties, NaN and infinities, over sizes
// that leave tails; and NaN is beyond all numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/infer.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class ArgExtremes : public KernelTest {};

TEST_P(ArgExtremes, AlongEveryAxis) {
  const std::vector<double> integers{1, 3, -2, 3, 0, 7, 7},
      floats{1, 3, -2, 3, NAN, 0.5, -HUGE_VAL, -2, HUGE_VAL, 7, 7};
  GraphCall call;
  auto add = [&](DType t, const Shape& shape) {
    for (const int64_t axis : {0, 1, 2})
      for (const char* op : {"arg_max", "arg_min"})
        for (const int64_t last : {0, 1})
          call.output(call.op(op, {call.input(repeated(t, shape, is_float(t) ? floats : integers))},
                              {{"axis", axis}, {"select_last_index", last}}));
  };
  for (const Shape& shape : {Shape{2, 21, 37}, Shape{3, 1, 16}, Shape{1, 5, 1}, Shape{4, 3, 131}})
    add(DType::kFloat32, shape);
  for (const DType t : {DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32})
    add(t, {2, 5, 37});
  expect_equal(call, 0);
}

// Where the extreme is said by hand: rows or columns of one pattern, each moved on by one.
TEST_P(ArgExtremes, NanIsBeyondAllNumbers) {
  struct Case {
    std::vector<double> x;
    int64_t largest, smallest, last_largest, last_smallest;
  };
  const double inf = HUGE_VAL;
  for (const Case& c : {Case{{1, NAN, 3, NAN, inf}, 1, 1, 3, 3},
                        {{NAN, NAN, NAN}, 0, 0, 2, 2},
                        {{inf, NAN, -inf}, 1, 1, 1, 1},
                        {{NAN, inf, 5}, 0, 0, 0, 0},
                        {{-inf, -inf, -inf}, 0, 0, 2, 2},
                        {{inf, inf, 1}, 0, 2, 1, 2},
                        {{0.0, -0.0, 0.0}, 0, 0, 2, 2}}) {
    const auto n = static_cast<int64_t>(c.x.size());
    std::vector<double> spread;
    for (const double v : c.x) spread.insert(spread.end(), 19, v);
    GraphCall call;
    std::vector<int64_t> expected;
    for (const bool rows : {true, false})
      for (const char* op : {"arg_max", "arg_min"})
        for (const int64_t last : {0, 1}) {
          const auto x = call.input(rows ? repeated(DType::kFloat32, {19, n}, c.x)
                                         : repeated(DType::kFloat32, {n, 19}, spread));
          call.output(call.op(op, {x}, {{"axis", int64_t{rows}}, {"select_last_index", last}}));
          const bool largest = std::string(op) == "arg_max";
          expected.push_back(last ? (largest ? c.last_largest : c.last_smallest)
                                  : (largest ? c.largest : c.smallest));
        }
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    for (size_t k = 0; k < expected.size(); ++k)
      for (int64_t i = 0; i < 19; ++i)
        ASSERT_EQ(element(oracle->outputs[k], i), expected[k])
            << "call " << k << " of " << testing::PrintToString(c.x);
    expect_equal(call, 0);
  }
}

// Enough terms to be shared out among threads, a NaN amid them.
TEST_P(ArgExtremes, ExtremesOfManyTermsKeepNan) {
  std::vector<double> x(100000, 0.5);
  x[70001] = NAN;
  x[10] = HUGE_VAL;
  GraphCall call;
  const auto input = call.input(repeated(DType::kFloat32, {100000}, x)),
             columns = call.input(repeated(DType::kFloat32, {1000, 100}, x));
  for (const char* op : {"reduce_max", "reduce_min"}) {
    call.output(call.op(op, {input}));
    call.output(call.op(op, {columns}, {{"axes", std::vector<int64_t>{0}}}));
  }
  for (const char* op : {"arg_max", "arg_min"}) call.output(call.op(op, {input}));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  for (size_t k : {0, 2}) EXPECT_TRUE(std::isnan(element(oracle->outputs[k], 0)));
  EXPECT_TRUE(std::isnan(element(oracle->outputs[1], 1)));
  EXPECT_EQ(element(oracle->outputs[1], 0), 0.5);
  EXPECT_EQ(element(oracle->outputs[4], 0), 70001);
  EXPECT_EQ(element(oracle->outputs[5], 0), 70001);
  expect_equal(call, 0);
}

// x sorted by TopK: whether its results are kept sorted or all of x is.
TEST_P(ArgExtremes, SortedNanIsLargest) {
  const std::vector<double> x{1, NAN, 3, -HUGE_VAL, NAN, HUGE_VAL, 0};
  GraphCall call;
  const auto few = call.input(repeated(DType::kFloat32, {7}, x)),
             many = call.input(repeated(DType::kFloat32, {70}, x));
  for (const int64_t largest : {1, 0})
    for (const auto& [input, k] : {std::pair{few, 7}, {many, 70}}) {
      const auto count = call.constant(repeated(DType::kInt64, {1}, {double(k)}));
      auto made = ir::add_node(call.graph, "top_k", {input, count}, {{"largest", largest}}, 2,
                               "top_k" + std::to_string(call.graph.values.size()), {"test"});
      ASSERT_TRUE(made.ok()) << made.error().to_string();
      call.output(made->at(1));
    }
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  const int64_t order[] = {1, 4, 5, 2, 0, 6, 3}, up[] = {3, 6, 0, 2, 5, 1, 4};
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(element(oracle->outputs[0], i), order[i]);
    EXPECT_EQ(element(oracle->outputs[2], i), up[i]);
  }
  for (int64_t i = 0; i < 20; ++i)  // ten times two NaN
    EXPECT_EQ(element(oracle->outputs[1], i), i / 2 * 7 + (i % 2 ? 4 : 1));
  expect_equal(call, 0);
}

TEST_P(ArgExtremes, PoolsKeepNan) {
  GraphCall call;
  const auto x = call.input(repeated(DType::kFloat32, {1, 1, 1, 8}, {1, 3, NAN, 3, 2, 0, 5, 4}));
  const ir::Attributes window{{"kernel_shape", std::vector<int64_t>{1, 3}}};
  call.output(call.op("max_pool", {x}, window));
  auto made = ir::add_node(call.graph, "max_pool_indices", {x}, window, 2, "pool", {"test"});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  call.output(made->at(0));
  call.output(made->at(1));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  const double values[] = {NAN, NAN, NAN, 3, 5, 5}, places[] = {2, 2, 2, 3, 6, 6};
  for (int64_t i = 0; i < 6; ++i) {
    for (const size_t k : {0, 1}) {
      const double v = element(oracle->outputs[k], i);
      EXPECT_TRUE(v == values[i] || (std::isnan(v) && std::isnan(values[i]))) << k << " " << i;
    }
    EXPECT_EQ(element(oracle->outputs[2], i), places[i]);
  }
  expect_equal(call, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ArgExtremes,
                         testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
