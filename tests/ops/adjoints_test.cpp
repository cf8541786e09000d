// <y, A x> = <A' y, x> for all x and y: what says that A' is the adjoint of A, to the last bits and
// without differences. A: each operator that a gradient asks for the adjoint of, with the operands that
// it has there, less what it makes of zeros (what is padded, or written beside x).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/graph/infer.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/gradient_graphs.h"

namespace tilewright {
namespace {

using ir::ValueId;

// The value of each of these in a graph.
Result<Tensors> values_of(const ir::Graph& graph, const Tensors& inputs,
                          const std::vector<ValueId>& values) {
  ir::Graph g = graph;
  g.outputs = values;
  g.output_names.assign(values.size(), "v");
  TW_ASSIGN(OracleRun run, interpret_graph(g, inputs));
  return run.outputs;
}

struct Products {
  double of_results = 0, of_operands = 0, size = 0;  // size: of the larger one's terms together
};
// Sum of a * b; size: what it may be taken for, where terms cancel.
double product(const HostTensor& a, const HostTensor& b, double& size) {
  double sum = 0, all = 0;
  for (int64_t k = 0; k < a.size(); ++k) {
    sum += element(a, k) * element(b, k);
    all += std::abs(element(a, k) * element(b, k));
  }
  size = std::max(size, all);
  return sum;
}

// node: a `transposed` of the graph.
Result<Products> products(const ir::Graph& graph, const ir::Node& node, const Tensors& inputs,
                          std::mt19937_64& random) {
  std::vector<ValueId> others;  // that only the run knows
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] != ir::kNone && !graph.value(node.inputs[i]).constant)
      others.push_back(node.inputs[i]);
  TW_ASSIGN(const Tensors known, values_of(graph, inputs, others));
  // Both in one graph: operands of the operator with x at its place, and of the adjoint with dy first.
  GraphCall call;
  const auto place =
      static_cast<size_t>(std::get<int64_t>(node.attributes.at("transposed_operand")));
  const ir::TensorType x_type{graph.value(node.inputs[0]).type.dtype,
                              std::get<ir::Extents>(node.attributes.at("transposed_extents")).dims};
  std::vector<ValueId> forward, backward;
  for (size_t i = 1, next = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    backward.push_back(v == ir::kNone ? v
                       : graph.value(v).constant
                           ? call.graph.add_constant("", graph.value(v).constant)
                           : call.input(known[next++]));
  }
  forward = backward;
  const HostTensor x = random_tensor(x_type.dtype, *ir::constant_shape(x_type), random);
  forward.insert(forward.begin() + static_cast<long>(place), call.input(x));
  ir::Attributes attributes = node.attributes;
  for (const char* own : {"transposed_op", "transposed_operand", "transposed_extents"})
    attributes.erase(own);
  const auto& op = std::get<std::string>(node.attributes.at("transposed_op"));
  call.output(call.op(op, forward, attributes));
  forward[place] = call.input(repeated(x.dtype, x.shape, {0}));
  call.output(call.op(op, forward, attributes));
  TW_ASSIGN(Tensors y, values_of(call.graph, call.inputs, call.graph.outputs));
  for (int64_t k = 0; k < y[0].size(); ++k) {  // infinities, too, are there without x
    double& of_x = y[0].data<double>()[k];
    of_x = of_x == element(y[1], k) ? 0 : of_x - element(y[1], k);
  }
  const HostTensor dy = random_tensor(y[0].dtype, y[0].shape, random);
  backward.insert(backward.begin(), call.input(dy));
  const ValueId back = call.op("transposed", backward, node.attributes);
  TW_ASSIGN(const Tensors dx, values_of(call.graph, call.inputs, {back}));
  Products p;
  p.of_results = product(dy, y[0], p.size);
  p.of_operands = product(dx[0], x, p.size);
  return p;
}

TEST(Adjoints, ProductsAreEqual) {
  std::mt19937_64 random(11);
  std::map<std::string, int> served;
  for (const GradientCase& c : gradient_cases()) {
    SCOPED_TRACE(c.name());
    auto d = graph_of(c);
    ASSERT_TRUE(d.ok()) << d.error().to_string();
    const auto gradients = passes::differentiate(d->graph, d->loss, d->of);
    ASSERT_TRUE(gradients.ok()) << gradients.error().to_string();
    for (const ir::Node& node : d->graph.nodes) {
      if (node.op != ir::find_op("transposed")) continue;
      const auto p = products(d->graph, node, d->inputs, random);
      ASSERT_TRUE(p.ok()) << p.error().to_string();
      EXPECT_NEAR(p->of_results, p->of_operands, 1e-12 * p->size);
      EXPECT_GT(p->size, 0);
      ++served[std::get<std::string>(node.attributes.at("transposed_op"))];
    }
  }
  for (const auto& [op, count] : served) RecordProperty(op, count);
  EXPECT_GE(served.size(), 20u);
}

}  // namespace
}  // namespace tilewright
