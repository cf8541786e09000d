// Images between planar and channels last: few planes, vectors along each. Compiled against
// interpreted, over sizes that leave tails.
#include <gtest/gtest.h>

#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class InterleavedPlanes : public KernelTest {
 protected:
  using Value = ir::ValueId;
  static Value turn(GraphCall& call, Value x, std::vector<int64_t> perm) {
    return call.op("transpose", {x}, {{"perm", std::move(perm)}});
  }
};

TEST_P(InterleavedPlanes, TransposesOfEveryType) {
  for (const DType t : {DType::kBool, DType::kInt8, DType::kUInt8, DType::kFloat16, DType::kInt32,
                        DType::kFloat32, DType::kFloat64, DType::kInt64}) {
    GraphCall call;
    for (const int64_t planes : {2, 3, 4, 5, 8})
      for (const auto& [height, width] :
           {std::pair<int64_t, int64_t>{1, 17}, {5, 7}, {16, 64}, {3, 131}, {67, 61}}) {
        call.output(turn(call, call.input(random(t, {2, planes, height, width})), {0, 2, 3, 1}));
        call.output(turn(call, call.input(random(t, {2, height, width, planes})), {0, 3, 1, 2}));
      }
    expect_equal(call, 0);
  }
}

// As images are prepared: made floats, scaled and shifted by channel; and back.
TEST_P(InterleavedPlanes, ImagesToFloatsAndBack) {
  GraphCall call;
  for (const int64_t planes : {3, 4})
    for (const int64_t width : {1, 29, 48, 113}) {
      const auto scale = call.input(random(DType::kFloat32, {planes})),
                 shift = call.input(random(DType::kFloat32, {planes}));
      const auto pixels = call.input(random(DType::kUInt8, {1, 23, width, planes}));
      const auto floats = call.op("cast", {pixels}, {{"to", std::string("f32")}});
      const auto scaled = call.op("add", {call.op("mul", {floats, scale}), shift});
      call.output(turn(call, scaled, {0, 3, 1, 2}));
      const auto planar = call.input(random(DType::kInt32, {2, planes, 19, width}));
      call.output(turn(call,
                       call.op("cast", {call.op("abs", {planar})}, {{"to", std::string("u8")}}),
                       {0, 2, 3, 1}));
    }
  expect_equal(call, 2);
}

// A plane that only pads, and borders.
TEST_P(InterleavedPlanes, Padded) {
  GraphCall call;
  for (const double border : {0., 1.})
    for (const int64_t width : {5, 62, 131}) {
      const auto x = call.input(random(DType::kFloat32, {2, 3, 11, width}));
      const auto pads =
          call.constant(repeated(DType::kInt64, {8}, {0, 0, border, border, 0, 1, border, border}));
      const auto padded =
          call.op("pad", {call.op("div", {x, call.input(random(DType::kFloat32, {1}))}), pads});
      call.output(turn(call, padded, {0, 2, 3, 1}));
    }
  expect_equal(call, 2);
}

INSTANTIATE_TEST_SUITE_P(Cpus, InterleavedPlanes,
                         testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
