// Random models with Loop, Scan and If, and nestings of them, against the same operators written out as
// often as they run. TILEWRIGHT_GRAPHS=n tries more of them, TILEWRIGHT_SEED=n one alone.
#include <gtest/gtest.h>

#include "frontends/onnx/import_graph.h"
#include "passes/graph/differentiate.h"
#include "tests/differential/programs/control_flow_draw.h"
#include "tests/differential/programs/program_run.h"
#include "tests/differential/programs/unrolled_model.h"
#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

using ir::ValueId;

constexpr double kRounding = 1e-9;  // of f64, in values up to 1 and sums of them
const CompiledForm kForms[] = {
    {true, true, true}, {true, false}, {false, true, true}, {false, false}, {.small_caches = true}};
constexpr uint64_t kRuns = 3;  // of one compiled model, with other numbers of passes

// A model, and the graph that it was imported as.
struct Case {
  ControlFlowModel model;
  ir::Graph graph;
};
// Some models state the shapes of values within, others leave them to be found.
void draw(uint64_t seed, Steadiness steadiness, Case& c) {
  c.model = draw_control_flow(seed, steadiness);
  onnx_format::ModelProto stated = c.model.model;
  if (seed % 3 == 0) forget_shapes(stated);
  const auto graph = import_model(stated);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  c.graph = *graph;
}
// Tensors of equal shapes whose elements differ by rounding alone.
void expect_near(const Tensors& found, const Tensors& expected, double scale) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    const auto d = difference(found[k], expected[k]);
    ASSERT_TRUE(d.has_value()) << "output " << k << " is " << to_string(found[k].shape)
                               << ", expected " << to_string(expected[k].shape);
    EXPECT_LE(*d, kRounding * scale) << "output " << k;
  }
}
// Returns the largest magnitude in the tensors, and at least 1: what errors are relative to.
double largest(const Tensors& all) {
  double most = 1;
  for (const HostTensor& t : all)
    for (int64_t i = 0; i < t.size(); ++i) most = std::max(most, std::abs(element(t, i)));
  return most;
}

// The compiled model, by one thread and by three, gives what the unrolled graph gives, for several inputs.
void check_model(uint64_t seed) {
  Case c;
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(draw(seed, Steadiness::kAny, c));
  const CompiledForm& form = kForms[seed % std::size(kForms)];
  const auto executable = compile_graph(c.graph, form);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  ProgramRun alone(*executable, 1), shared(*executable, 3);
  for (uint64_t run = 0; run < kRuns; ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const Tensors inputs = draw_inputs(c.model, run);
    const UnrolledModel unrolled = unroll(c.model.model, inputs);
    Tensors memory = inputs;
    const auto found = alone.run(memory), again = shared.run(memory);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    expect_near(*found, unrolled.outputs, 1);
    for (size_t k = 0; k < found->size(); ++k)
      EXPECT_EQ((*again)[k].bytes, (*found)[k].bytes)
          << "output " << k << " depends on the threads";
    if (run > 0 || seed % 8 != 0) continue;
    const auto straight = run_compiled(unrolled.call.graph, inputs, form, {1});
    ASSERT_TRUE(straight.ok()) << straight.error().to_string();
    expect_near(*found, (*straight)[0], 1);
  }
}

// The sum of the sines of all floats that a graph gives.
ValueId add_loss(GraphCall& call) {
  ValueId loss = ir::kNone;
  const std::vector<ValueId> results = call.graph.outputs;
  for (const ValueId y : results) {
    if (call.graph.value(y).type.dtype != DType::kFloat64) continue;
    const ValueId sum = call.op("reduce_sum", {call.op("sin", {y})}, {{"keepdims", int64_t{0}}});
    loss = loss == ir::kNone ? sum : call.op("add", {loss, sum});
  }
  return loss;
}
// Of the loss by all floats that are given; nothing where there is no loss.
Result<bool> take_gradients(GraphCall& call) {
  const ValueId loss = add_loss(call);
  if (loss == ir::kNone) return false;
  std::vector<ValueId> wanted;
  for (const ValueId v : call.graph.inputs)
    if (call.graph.value(v).type.dtype == DType::kFloat64) wanted.push_back(v);
  TW_ASSIGN(const auto gradients, passes::differentiate(call.graph, loss, wanted));
  call.graph.outputs.clear();
  call.graph.output_names.clear();
  for (const ValueId g : gradients) call.output(g);
  return true;
}

void check_gradients(uint64_t seed) {
  Case c;
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(draw(seed, Steadiness::kAny, c));
  GraphCall rolled;
  rolled.graph = c.graph;
  const auto has = take_gradients(rolled);
  ASSERT_TRUE(has.ok()) << has.error().to_string();
  if (!*has) return;
  const auto executable = compile_graph(rolled.graph, kForms[seed % std::size(kForms)]);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  ProgramRun program(*executable, 1);
  for (uint64_t run = 0; run < 2; ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const Tensors inputs = draw_inputs(c.model, seed + run);
    UnrolledModel unrolled = unroll(c.model.model, inputs);
    ASSERT_TRUE(take_gradients(unrolled.call).ok());
    const auto expected = interpret_graph(unrolled.call.graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    Tensors memory = inputs;
    const auto found = program.run(memory);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    expect_near(*found, expected->outputs, largest(expected->outputs));
  }
}

// Where every pass needs the same memory, what is enough for two of them is enough for any number.
void check_memory(uint64_t seed) {
  Case c;
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(draw(seed, Steadiness::kSteady, c));
  const auto executable = compile_graph(c.graph, kForms[seed % std::size(kForms)]);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  const auto runs = [&](int64_t passes, int64_t limit) {
    Tensors inputs = draw_inputs(c.model, seed);
    inputs[0].data<int64_t>()[0] = passes;
    inputs[1].data<int64_t>()[0] = 3;
    const auto found = ProgramRun(*executable, 1, limit).run(inputs);
    EXPECT_TRUE(found.ok() || found.error().kind == ErrorKind::kLimit) << found.error().to_string();
    return found.ok();
  };
  int64_t least = 0, enough = 1 << 20;
  ASSERT_TRUE(runs(2, enough));
  while (least < enough)
    if (const int64_t middle = (least + enough) / 2; runs(2, middle))
      enough = middle;
    else
      least = middle + 1;
  for (const int64_t passes : {0, 1, 3, 40})
    EXPECT_TRUE(runs(passes, enough)) << passes << " passes do not run with " << enough << " bytes";
}

constexpr int kParts = 4;
class RandomControlFlow : public testing::TestWithParam<int> {};

TEST_P(RandomControlFlow, DoesWhatItsUnrolledFormDoes) {
  check_seeds(GetParam(), kParts, 48, check_model);
}
TEST_P(RandomControlFlow, HasTheGradientsOfItsUnrolledForm) {
  check_seeds(GetParam(), kParts, 24, check_gradients);
}
TEST_P(RandomControlFlow, NeedsNoMoreMemoryForMorePasses) {
  check_seeds(GetParam(), kParts, 24, check_memory);
}
INSTANTIATE_TEST_SUITE_P(Part, RandomControlFlow, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
