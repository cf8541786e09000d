// Gradients of random graphs, of all inputs and weights: interpreted against compiled, one thread against three.
// TILEWRIGHT_GRAPHS=n tries more of them, TILEWRIGHT_SEED=n one alone.
#include <gtest/gtest.h>

#include "passes/graph/differentiate.h"
#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

using ir::ValueId;

constexpr int kParts = 8;
const CompiledForm kForms[] = {{}, {.small_caches = true}, {.l2_bytes = 16 << 10}, {.fuse = false}};

// What is trained: floats that are given, and constants with more than one element.
std::vector<ValueId> parameters(const ir::Graph& graph) {
  std::vector<ValueId> found = graph.inputs;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.constant && value.type.rank() > 0) found.push_back(static_cast<ValueId>(v));
  }
  std::erase_if(found, [&](ValueId v) { return graph.value(v).type.dtype != DType::kFloat32; });
  return found;
}

void check_gradients(uint64_t seed) {
  const RandomGraph r = make_random_graph(seed);
  GraphCall call;
  call.graph = r.graph;
  call.inputs = r.inputs;
  const std::vector<ValueId> wanted = parameters(call.graph), results = call.graph.outputs;
  ValueId loss = ir::kNone;
  for (const ValueId y : results) {
    if (call.graph.value(y).type.dtype != DType::kFloat32) continue;
    const ValueId sum = call.op("reduce_sum", {call.op("sin", {y})}, {{"keepdims", int64_t{0}}});
    loss = loss == ir::kNone ? sum : call.op("add", {loss, sum});
  }
  ASSERT_NE(loss, ir::kNone);
  const auto gradients = passes::differentiate(call.graph, loss, wanted);
  ASSERT_TRUE(gradients.ok()) << gradients.error().to_string() << "\n" << describe_graph(r.graph);
  call.graph.outputs.clear();
  call.graph.output_names.clear();
  for (const ValueId g : *gradients) call.output(g);
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(call.graph));
  auto oracle = interpret_graph(call.graph, call.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  const std::vector<double> allowed = tolerances(call.graph, call.inputs, *oracle);
  auto runs = run_compiled(call.graph, call.inputs, kForms[seed % std::size(kForms)], {1, 3});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  expect_as_interpreted(*runs, *oracle, allowed);
}

class RandomGradientGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGradientGraphs, AreAsInterpreted) {
  check_seeds(GetParam(), kParts, 160, check_gradients);
}

INSTANTIATE_TEST_SUITE_P(Part, RandomGradientGraphs, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
