// Compares the straight-through gradient of quantize and dequantize with its formula. The gradient of x passes through
// unchanged inside the clamp range and is 0 outside. The gradient of the scale is the rounding error inside the range
// and the clamp bound outside.
#include <gtest/gtest.h>

#include <cmath>

#include "passes/graph/differentiate.h"
#include "runtime/core/dtype.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::ValueId;

struct Case {
  DType to;
  int axis;  // of scales and zero points in x, [3, 4, 5]; -1: of the whole tensor
  bool has_zero_point, moved;
};

class StraightThrough : public testing::TestWithParam<Case> {};

Shape parameter_shape(const Case& c) {
  Shape shape(3, 1);
  if (c.axis < 0) return {};
  shape[static_cast<size_t>(c.axis)] = Shape{3, 4, 5}[static_cast<size_t>(c.axis)];
  return shape;
}

TEST_P(StraightThrough, EqualsTheFormula) {
  const Case& c = GetParam();
  const double numbers = std::ldexp(1, 8 * byte_size(c.to)),
               least = is_unsigned(c.to) ? 0 : -numbers / 2, most = least + numbers - 1;
  const Shape shape = parameter_shape(c);
  const int64_t count = *element_count(shape);
  std::vector<double> scales, zeros, xs, weights;
  for (int64_t k = 0; k < count; ++k) {
    scales.push_back(0.01 * static_cast<double>(k + 1));
    zeros.push_back(c.has_zero_point ? std::floor(least + numbers * 0.4) + static_cast<double>(k)
                                     : 0);
  }
  // Twice the range of the type, so that some elements lie beyond either end.
  for (int64_t k = 0; k < 60; ++k) {
    xs.push_back(0.01 * numbers * (2 * std::fmod(0.37 * static_cast<double>(k) + 0.013, 1.0) - 1));
    weights.push_back(std::sin(static_cast<double>(k) + 1));
  }
  GraphCall call;
  const ValueId x = call.input(repeated(DType::kFloat64, {3, 4, 5}, xs)),
                scale = call.input(repeated(DType::kFloat64, shape, scales)),
                zero = c.has_zero_point ? call.constant(repeated(c.to, shape, zeros)) : ir::kNone;
  ValueId q = call.op("quantize", {x, scale, zero}, {{"to", std::string(name(c.to))}});
  // What moves the integers, back and forth, changes nothing.
  if (c.moved) {
    const std::vector<int64_t> there{2, 0, 1}, back{1, 2, 0};
    q = call.op("transpose", {call.op("transpose", {q}, {{"perm", there}})}, {{"perm", back}});
  }
  const ValueId y = call.op("dequantize", {q, scale, zero}, {{"to", std::string("f64")}}),
                weight = call.constant(repeated(DType::kFloat64, {3, 4, 5}, weights)),
                loss = call.op("reduce_sum", {call.op("mul", {y, weight})},
                               {{"keepdims", int64_t{0}}});
  const auto found = passes::differentiate(call.graph, loss, {x, scale});
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  call.output((*found)[0]);
  call.output((*found)[1]);
  const auto run = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  std::vector<double> by_scale(static_cast<size_t>(count), 0.0);
  int beyond = 0;
  for (int64_t k = 0; k < 60; ++k) {
    const int64_t at[] = {k / 20, k / 5 % 4, k % 5};
    const auto p = static_cast<size_t>(c.axis < 0 ? 0 : at[c.axis]);
    const auto i = static_cast<size_t>(k);
    const double quotient = xs[i] / scales[p], stored = std::nearbyint(quotient) + zeros[p];
    const bool inside = stored >= least && stored <= most;
    beyond += !inside;
    EXPECT_NEAR(element(run->outputs[0], k), inside ? weights[i] : 0, 1e-12) << "element " << k;
    by_scale[p] +=
        weights[i] * (std::min(std::max(stored, least), most) - zeros[p] - (inside ? quotient : 0));
  }
  EXPECT_GT(beyond, 0);
  EXPECT_LT(beyond, 60);
  for (int64_t k = 0; k < count; ++k)
    EXPECT_NEAR(element(run->outputs[1], k), by_scale[static_cast<size_t>(k)], 1e-9 * numbers)
        << "scale " << k;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType to : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16})
    for (const int axis : {-1, 0, 1, 2})
      for (const bool zero_point : {false, true})
        for (const bool moved : {false, true}) all.push_back({to, axis, zero_point, moved});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, StraightThrough, testing::ValuesIn(cases()), [](const auto& info) {
  const Case& c = info.param;
  return std::string(name(c.to)) + (c.axis < 0 ? "_tensor" : "_axis" + std::to_string(c.axis)) +
         (c.has_zero_point ? "_zero_point" : "") + (c.moved ? "_moved" : "");
});

}  // namespace
}  // namespace tilewright
