// Operators against sums written out here, not against their loops in the interpreter: what the
// node cases of ONNX do not ask for.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/infer.h"
#include "ir/module_text/parser_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

// Offset of a matrix in an operand whose batch dimensions broadcast, aligned right.
int64_t matrix_at(const Shape& shape, const std::vector<int64_t>& batch) {
  int64_t at = 0;
  const size_t lead = shape.size() - 2;
  for (size_t d = 0; d < lead; ++d)
    at = at * shape[d] + (shape[d] == 1 ? 0 : batch[batch.size() - lead + d]);
  return at;
}

TEST(Definitions, ProductsOfBatchesOfOtherRanks) {
  std::mt19937_64 random(11);
  const int64_t rows = 3, terms = 5, columns = 4;
  for (const auto& [a_batch, b_batch] : {std::pair{Shape{2, 3}, Shape{3}},
                                         {Shape{3}, Shape{2, 3}},
                                         {Shape{2, 3}, Shape{}},
                                         {Shape{2, 1}, Shape{3}},
                                         {Shape{}, Shape{2, 3}},
                                         {Shape{1, 3}, Shape{2, 1}}}) {
    Shape a = a_batch, b = b_batch;
    a.insert(a.end(), {rows, terms});
    b.insert(b.end(), {terms, columns});
    GraphCall call;
    const HostTensor x = random_tensor(DType::kInt32, a, random),
                     y = random_tensor(DType::kInt32, b, random);
    call.output(call.op("matmul", {call.input(x), call.input(y)}));
    auto found = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    const HostTensor& z = found->outputs[0];
    std::vector<int64_t> batch(z.shape.size() - 2);
    for (int64_t n = 0; n < z.size(); ++n) {
      int64_t rest = n / (rows * columns);
      for (size_t d = batch.size(); d-- > 0; rest /= z.shape[d]) batch[d] = rest % z.shape[d];
      const int64_t r = n / columns % rows, c = n % columns;
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k)
        sum += element(x, (matrix_at(a, batch) * rows + r) * terms + k) *
               element(y, (matrix_at(b, batch) * terms + k) * columns + c);
      ASSERT_EQ(element(z, n), sum) << to_string(a) << " by " << to_string(b) << ", element " << n;
    }
  }
}

// Integers of 16 bits are no halves: their sums are as those of other integers, in their own type.
TEST(Definitions, MeansOfShortIntegersAreOneOperation) {
  for (DType t : {DType::kInt8, DType::kInt16, DType::kInt32}) {
    GraphCall call;
    const double most = t == DType::kInt8 ? 127 : 32767;
    const std::vector<double> values{most, most, 1, 1, -7, 3, 11, 4};
    const ir::ValueId v = call.input(repeated(t, {1, 2, 4}, values));
    call.output(call.op("average_pool", {v}, {{"kernel_shape", std::vector<int64_t>{4}}}));
    call.output(call.op("reduce_mean", {v}, {{"axes", std::vector<int64_t>{2}}}));
    auto found = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(element(found->outputs[0], i), element(found->outputs[1], i)) << name(t);
  }
}

// A sequence in reverse starts at its own last step.
TEST(Definitions, SequencesInReverseStartAtTheirEnd) {
  const int64_t steps = 5, batch = 3;
  const std::vector<double> lengths{5, 2, 3};
  std::mt19937_64 random(13);
  for (const bool reverse : {false, true}) {
    GraphCall call;
    const HostTensor x = random_tensor(DType::kFloat32, {steps, batch, 1}, random);
    ir::Attributes attributes{{"activations", std::vector<std::string>{"tanh"}},
                              {"alpha", std::vector<double>{0}},
                              {"beta", std::vector<double>{0}}};
    if (reverse) attributes["reverse"] = int64_t{1};
    auto made = ir::add_node(call.graph, "rnn_steps",
                             {call.input(x), call.input(repeated(DType::kFloat32, {1, 1}, {0.5})),
                              ir::kNone, call.input(repeated(DType::kInt64, {batch}, lengths))},
                             attributes, 2, "h", {"test"});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (const ir::ValueId v : *made) call.output(v);
    auto found = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    for (int64_t b = 0; b < batch; ++b) {
      const auto length = static_cast<int64_t>(lengths[static_cast<size_t>(b)]);
      double h = 0;
      for (int64_t k = 0; k < steps; ++k) {
        const int64_t t = reverse && k < length ? length - 1 - k : k;
        if (k < length) h = std::tanh(element(x, t * batch + b) + 0.5 * h);
        EXPECT_NEAR(element(found->outputs[0], t * batch + b), k < length ? h : 0, 1e-6)
            << "step " << t << " of sequence " << b;
      }
      EXPECT_NEAR(element(found->outputs[1], b), h, 1e-6) << "sequence " << b;
    }
  }
}

// Extents that only the run knows may be 1 there, and repeat.
TEST(Definitions, WhatExpandsIsKnownAtTheRun) {
  auto graph = ir::parse_graph(R"(graph expands {
  input x: f32[n]
  input s: i64[1]
  y: f32[k] = expand(x, s) defines(k)
  output y as "y"
}
)");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const HostTensor one = repeated(DType::kFloat32, {1}, {7}),
                   three = repeated(DType::kFloat32, {3}, {1, 2, 3});
  for (const auto& [x, wanted, expected] : {std::tuple{one, 3, repeated(DType::kFloat32, {3}, {7})},
                                            {three, 1, three},
                                            {three, 3, three}}) {
    auto runs = run_compiled(
        *graph, {x, repeated(DType::kInt64, {1}, {static_cast<double>(wanted)})}, {}, {1});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    EXPECT_EQ(difference((*runs)[0][0], expected), 0.0) << x.size() << " to " << wanted;
  }
}

}  // namespace
}  // namespace tilewright
