// Differentiation of whole graphs: values with several readers, what does not matter to the loss, and
// what stands in the way.
#include <gtest/gtest.h>

#include "passes/graph/differentiate.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::ValueId;

HostTensor numbers(const Shape& shape, const std::vector<double>& values) {
  return repeated(DType::kFloat64, shape, values);
}
void set_outputs(ir::Graph& graph, const std::vector<ValueId>& outputs) {
  graph.outputs = outputs;
  graph.output_names.assign(outputs.size(), "y");
}
// The gradients of a graph's loss by all of its inputs.
Result<Tensors> gradients_of(GraphCall call, ValueId loss) {
  TW_ASSIGN(const auto found, passes::differentiate(call.graph, loss, call.graph.inputs));
  set_outputs(call.graph, found);
  TW_ASSIGN(OracleRun run, interpret_graph(call.graph, call.inputs));
  return run.outputs;
}

// x * x + x: three uses, whose parts add up.
TEST(Differentiate, SumsUpWhatReadersPassOn) {
  GraphCall call;
  const ValueId x = call.input(numbers({2}, {3, -1}));
  const ValueId square = call.op("mul", {x, x}), y = call.op("add", {square, x});
  const auto g = gradients_of(call, call.op("reduce_sum", {y}, {{"keepdims", int64_t{0}}}));
  ASSERT_TRUE(g.ok()) << g.error().to_string();
  EXPECT_EQ(element((*g)[0], 0), 7);
  EXPECT_EQ(element((*g)[0], 1), -1);
}

// As if it were a constant: x * c has the derivative c.
TEST(Differentiate, StopsWhereItIsTold) {
  GraphCall call;
  const ValueId x = call.input(numbers({2}, {3, -1}));
  const ValueId product = call.op("mul", {x, call.op("stop_gradient", {x})});
  const auto g = gradients_of(call, call.op("reduce_sum", {product}, {{"keepdims", int64_t{0}}}));
  ASSERT_TRUE(g.ok()) << g.error().to_string();
  EXPECT_EQ(element((*g)[0], 0), 3);
  EXPECT_EQ(element((*g)[0], 1), -1);
}

TEST(Differentiate, WhatDoesNotMatterHasZeros) {
  GraphCall call;
  const ValueId x = call.input(numbers({2}, {3, -1})), y = call.input(numbers({3}, {1, 2, 3}));
  call.op("exp", {y});
  const auto g = gradients_of(call, call.op("reduce_sum", {x}, {{"keepdims", int64_t{0}}}));
  ASSERT_TRUE(g.ok()) << g.error().to_string();
  EXPECT_EQ((*g)[1].shape, Shape{3});
  for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(element((*g)[1], k), 0);
}

// All at once, by the names of their nodes; an operator that only integers pass through is none.
TEST(Differentiate, ObstaclesAreListed) {
  GraphCall call;
  const ValueId x = call.input(numbers({2, 2}, {3, 1, 2, 5}));
  const auto sum = [&](ValueId v) {
    return call.op("reduce_sum", {v}, {{"keepdims", int64_t{0}}});
  };
  const ValueId bits = call.op("bit_cast", {x}, {{"to", std::string("f64")}});
  const ValueId different = call.op("unique", {x});
  call.op("arg_max", {x});
  const ValueId loss = call.op("add", {sum(bits), sum(different)});
  const auto found = passes::differentiate(call.graph, loss, {x});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kUnsupported);
  const std::string text = found.error().to_string();
  EXPECT_NE(text.find("2 nodes cannot be differentiated"), std::string::npos) << text;
  EXPECT_NE(text.find("bit_cast"), std::string::npos) << text;
  EXPECT_NE(text.find("unique"), std::string::npos) << text;
}

TEST(Differentiate, ALossIsOneNumber) {
  GraphCall call;
  const ValueId x = call.input(numbers({2}, {3, -1}));
  const auto found = passes::differentiate(call.graph, call.op("exp", {x}), {x});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().to_string().find("expected one number"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
