// Random graphs: gradients against central differences, and compiled against interpreted.
// TILEWRIGHT_GRADIENT_GRAPHS, set where this is built, says how many (CMakeLists.txt).
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/graph/infer.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::ValueId;

constexpr int kGraphs = TILEWRIGHT_GRADIENT_GRAPHS, kTogether = std::min(kGraphs, 100);

void set_outputs(ir::Graph& graph, const std::vector<ValueId>& outputs) {
  graph.outputs = outputs;
  graph.output_names.assign(outputs.size(), "y");
}

// Nodes over values of [rows, columns], broadcast rows and columns, products and movements among them,
// of operators that are smooth: differences across a bend say nothing.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {
    for (int k = 0; k < 3; ++k) {
      const Shape shapes[] = {{rows_, columns_}, {rows_, 1}, {columns_}};
      HostTensor t = random_tensor(DType::kFloat64, shapes[k], random_);
      values_.push_back(call.input(std::move(t)));
    }
    for (int k = 0; k < 8; ++k) add_node();
    ValueId sum = call.op("reduce_mean", {values_.back()}, {{"keepdims", int64_t{0}}});
    for (ValueId v : {values_[3], values_[5]})
      sum = call.op("add", {sum, call.op("reduce_sum", {v}, {{"keepdims", int64_t{0}}})});
    loss = sum;
  }
  GraphCall call;
  ValueId loss = ir::kNone;

 private:
  ValueId any() { return values_[random_() % values_.size()]; }
  // Values stay between -1 and 1, so that no chain of products runs away.
  void add_node() {
    const ValueId a = any(), b = any();
    ValueId v = ir::kNone;
    switch (random_() % 11) {
      case 0: v = call.op("mul", {a, b}); break;
      case 1: v = call.op("sub", {a, b}); break;
      case 2: v = call.op("sigmoid", {a}); break;
      case 3: v = call.op("softmax", {call.op("add", {a, b})}); break;
      case 4: v = call.op("matmul", {full(a), full(b)}, {{"trans_b", int64_t{1}}}); break;
      case 5: v = call.op("reduce_mean", {full(a)}, {{"axes", std::vector<int64_t>{1}}}); break;
      case 6: v = call.op("layer_norm", {full(a)}, {{"epsilon", 0.5}}); break;
      case 7: v = call.op("cumulative_sum", {full(a), axis()}); break;
      case 8: v = call.op("cumulative_product", {full(a), axis()}); break;
      case 9: v = call.op("gather", {full(a), some_columns()}, {{"axis", int64_t{1}}}); break;
      default: v = call.op("concat", {full(a), full(b)}, {{"axis", int64_t{0}}}); break;
    }
    v = call.op("tanh", {v});
    if (rank(v) == 2 && extent(v, 0) == 2 * rows_)
      v = call.op("slice", {v, ints(1), ints(rows_ + 1)});
    if (rank(v) == 2 && extent(v, 1) == rows_ && rows_ != columns_)
      v = call.op("matmul", {v, full(a)});
    values_.push_back(v);
  }
  ValueId full(ValueId v) {
    return call.op(
        "expand",
        {v, call.constant(repeated(DType::kInt64, {2}, {double(rows_), double(columns_)}))});
  }
  ValueId axis() { return ints(static_cast<int64_t>(random_() % 2)); }
  // As many as there are, some of them twice.
  ValueId some_columns() {
    std::vector<double> columns;
    for (int64_t k = 0; k < columns_; ++k)
      columns.push_back(static_cast<double>(random_() % static_cast<uint64_t>(columns_)));
    return call.constant(repeated(DType::kInt64, {columns_}, columns));
  }
  ValueId ints(int64_t n) { return call.constant(repeated(DType::kInt64, {1}, {double(n)})); }
  int rank(ValueId v) const { return call.graph.value(v).type.rank(); }
  int64_t extent(ValueId v, size_t d) const {
    return (*constant_shape(call.graph.value(v).type))[d];
  }

  std::mt19937_64 random_;
  const int64_t rows_ = static_cast<int64_t>(1 + random_() % 3),
                columns_ = std::vector<int64_t>{1, 2, 3, 5}[random_() % 4];
  std::vector<ValueId> values_;
};

// One element of each input, at random; and compiled equals interpreted.
void check(int seed) {
  RandomGraph r(static_cast<uint64_t>(seed));
  ir::Graph forward = r.call.graph;
  set_outputs(forward, {r.loss});
  GraphCall call = r.call;
  const auto found = passes::differentiate(call.graph, r.loss, call.graph.inputs);
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  set_outputs(call.graph, *found);
  const auto run = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  const auto compiled = run_compiled(call.graph, call.inputs, {}, {1, 3});
  ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const HostTensor& g = run->outputs[i];
    const auto off = difference((*compiled)[0][i], g);
    ASSERT_TRUE(off.has_value());
    EXPECT_LE(*off, epsilon(DType::kFloat64) * (64 + run->steps) * std::max(1.0, run->largest));
    EXPECT_EQ((*compiled)[0][i].bytes, (*compiled)[1][i].bytes);
    const auto k = static_cast<int64_t>(random() % static_cast<uint64_t>(g.size()));
    double slopes[2];
    for (int half : {0, 1}) {
      const double h = half ? 5e-4 : 1e-3;
      double sides[2];
      for (int side : {0, 1}) {
        Tensors moved = call.inputs;
        moved[i].data<double>()[k] += side ? h : -h;
        const auto at = interpret_graph(forward, moved);
        ASSERT_TRUE(at.ok()) << at.error().to_string();
        sides[side] = element(at->outputs[0], 0);
      }
      slopes[half] = (sides[1] - sides[0]) / (2 * h);
    }
    EXPECT_NEAR(element(g, k), (4 * slopes[1] - slopes[0]) / 3, 1e-6) << "input " << i;
  }
}

class RandomGradients : public testing::TestWithParam<int> {};

TEST_P(RandomGradients, EqualCentralDifferences) {
  for (int seed = GetParam(); seed < GetParam() + kTogether; ++seed) {
    SCOPED_TRACE(seed);
    check(seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(From, RandomGradients, testing::Range(1, kGraphs + 1, kTogether));

}  // namespace
}  // namespace tilewright
