// Places of extremes, a result in each lane or along rows: compiled equals interpreted, with ties,
// NaN and infinities, over sizes that leave tails.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class ArgExtremes : public KernelTest {};

TEST_P(ArgExtremes, AlongEveryAxis) {
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
  expect_equal(call, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ArgExtremes, testing::Values("native", "x86-64-v4", "x86-64-v3"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
