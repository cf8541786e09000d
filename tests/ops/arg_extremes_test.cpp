// Places of extremes, a result in each lane or along rows: compiled equals interpreted, with ties,
// NaN and infinities, over sizes that leave tails.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

class ArgExtremes : public testing::TestWithParam<const char*> {};

TEST_P(ArgExtremes, AlongEveryAxis) {
  if (!runs_here(GetParam())) GTEST_SKIP() << "this machine lacks what " << GetParam() << " has";
  GraphCall call;
  for (const Shape& shape : {Shape{2, 21, 37}, Shape{3, 1, 16}, Shape{1, 5, 1}, Shape{4, 3, 131}})
    for (const int64_t axis : {0, 1, 2})
      for (const char* op : {"arg_max", "arg_min"})
        for (const int64_t last : {0, 1})
          call.output(call.op(
              op,
              {call.input(repeated(DType::kFloat32, shape,
                                   {1, 3, -2, 3, NAN, 0.5, -HUGE_VAL, -2, HUGE_VAL, 7, 7}))},
              {{"axis", axis}, {"select_last_index", last}}));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  auto runs = run_compiled(call.graph, call.inputs, {true, true, false, GetParam()}, {1, 3});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (const Tensors& run : *runs)
    for (size_t k = 0; k < run.size(); ++k)
      EXPECT_EQ(difference(run[k], oracle->outputs[k]), 0.0) << "output " << k;
}

INSTANTIATE_TEST_SUITE_P(Cpu, ArgExtremes, testing::Values("native", "x86-64-v4", "x86-64-v3"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
