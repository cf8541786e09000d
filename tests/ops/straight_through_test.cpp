// Compares the straight-through gradient of quantize and dequantize with its formula. The gradient of x passes through
// unchanged inside the clamp range and is 0 outside. The gradient of the scale is the rounding error inside the range
// and the clamp bound outside.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/module_text/parser_graph.h"
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

// Builds nodes that move elements. Applied to quantised integers they must have the gradient that they
// have when applied to the dequantised floats.
using Move = ValueId (*)(GraphCall&, ValueId);
ValueId ints(GraphCall& call, const std::vector<double>& values) {
  return call.constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
}
const std::map<std::string, Move> kMoves{
    {"slice",
     [](GraphCall& c, ValueId v) {
       return c.op("slice", {v, ints(c, {1}), ints(c, {4}), ints(c, {2}), ints(c, {1})});
     }},
    {"gather",
     [](GraphCall& c, ValueId v) {
       return c.op("gather", {v, ints(c, {2, 0, 2})}, {{"axis", int64_t{1}}});
     }},
    {"expand", [](GraphCall& c, ValueId v) { return c.op("expand", {v, ints(c, {2, 3, 4, 5})}); }},
    {"tile", [](GraphCall& c, ValueId v) { return c.op("tile", {v, ints(c, {1, 2, 3})}); }},
    {"concat",
     [](GraphCall& c, ValueId v) { return c.op("concat", {v, v}, {{"axis", int64_t{2}}}); }},
    {"reshape", [](GraphCall& c, ValueId v) { return c.op("reshape", {v, ints(c, {5, 12})}); }},
};
ValueId gradient_behind(GraphCall& call, Move move, bool of_integers) {
  std::vector<double> xs(60);
  for (size_t k = 0; k < xs.size(); ++k) xs[k] = 4 * std::sin(static_cast<double>(k));
  const ValueId x = call.input(repeated(DType::kFloat64, {3, 4, 5}, xs)),
                scale = call.constant(repeated(DType::kFloat64, {}, {0.02}));
  const ValueId q = call.op("quantize", {x, scale, ir::kNone}, {{"to", std::string("i8")}});
  const ir::Attributes to{{"to", std::string("f64")}};
  const ValueId y = of_integers ? call.op("dequantize", {move(call, q), scale, ir::kNone}, to)
                                : move(call, call.op("dequantize", {q, scale, ir::kNone}, to));
  const ValueId loss = call.op("reduce_sum", {call.op("mul", {y, y})}, {{"keepdims", int64_t{0}}});
  const auto found = passes::differentiate(call.graph, loss, {x});
  EXPECT_TRUE(found.ok()) << found.error().to_string();
  return found.ok() ? (*found)[0] : ir::kNone;
}
TEST(StraightThroughMoved, IntegersAreMovedAsFloatsAre) {
  for (const auto& [name, move] : kMoves) {
    SCOPED_TRACE(name);
    std::vector<HostTensor> gradients;
    for (const bool of_integers : {false, true}) {
      GraphCall call;
      const ValueId g = gradient_behind(call, move, of_integers);
      ASSERT_NE(g, ir::kNone);
      call.output(g);
      auto run = interpret_graph(call.graph, call.inputs);
      ASSERT_TRUE(run.ok()) << run.error().to_string();
      gradients.push_back(run->outputs[0]);
    }
    double largest = 0;
    for (int64_t k = 0; k < gradients[0].size(); ++k) {
      EXPECT_NEAR(element(gradients[1], k), element(gradients[0], k), 1e-12) << "element " << k;
      largest = std::max(largest, std::abs(element(gradients[0], k)));
    }
    EXPECT_GT(largest, 0);
  }
}
// A branch that reads quantised integers has no gradient yet, which is said.
TEST(StraightThroughMoved, ControlFlowIsRefused) {
  auto graph = ir::parse_graph(R"(graph g {
  input c: bool[]
  input x: f32[3]
  const s: f32[] = [0.5]
  q: i8[3] = quantize(x, s, _) {to = "i8"}
  y: f32[3] = if(c, q, s) with [
    graph then {
      input v: i8[3]
      input t: f32[]
      d: f32[3] = dequantize(v, t)
      output d as "d"
    }
    graph otherwise {
      input v: i8[3]
      input t: f32[]
      d: f32[3] = dequantize(v, t)
      output d as "d"
    }
  ]
  loss: f32[] = reduce_sum(y) {keepdims = 0}
  output loss as "loss"
}
)");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto found = passes::differentiate(*graph, graph->outputs[0], {graph->inputs[1]});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().to_string().find("quantised integers"), std::string::npos)
      << found.error().to_string();
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
