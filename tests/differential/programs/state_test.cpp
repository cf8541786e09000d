// Random models that update inputs in place, run step after step on their own state, against their
// operators one by one on values. TILEWRIGHT_GRAPHS=n tries more of them, TILEWRIGHT_SEED=n one alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/differential/programs/program_run.h"
#include "tests/differential/programs/state_draw.h"
#include "tests/differential/programs/unrolled_model.h"
#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

constexpr double kRounding = 1e-9;  // of f64, in values up to 1 and sums of few of them
constexpr int kSteps = 3;
const CompiledForm kForms[] = {
    {true, true, true}, {true, false}, {false, true, true}, {false, false}, {.small_caches = true}};

// What the updated inputs and the other outputs of a run are to be.
struct Expected {
  Tensors inputs, outputs;
};
Expected expected_of(const StateModel& model, const Tensors& inputs) {
  const Tensors all = unroll(model.model, inputs).outputs;
  Expected e{inputs, {}};
  for (size_t k = 0; k < all.size(); ++k) {
    const auto update =
        std::find_if(model.updates.begin(), model.updates.end(),
                     [&](const auto& u) { return static_cast<size_t>(u.output) == k; });
    if (update == model.updates.end())
      e.outputs.push_back(all[k]);
    else
      e.inputs[static_cast<size_t>(update->input)] = all[k];
  }
  return e;
}
void expect_near(const Tensors& found, const Tensors& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    const auto d = difference(found[k], expected[k]);
    ASSERT_TRUE(d.has_value()) << what << " " << k;
    EXPECT_LE(*d, kRounding) << what << " " << k;
  }
}

void check_model(uint64_t seed) {
  const StateModel model = draw_state(seed);
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
  auto graph = import_model(model.model);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  graph->updates = model.updates;
  const auto executable = compile_graph(*graph, kForms[seed % std::size(kForms)]);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  ProgramRun alone(*executable, 1), shared(*executable, 3);
  Tensors state = draw_inputs(model, seed);
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Tensors others = draw_inputs(model, seed + static_cast<uint64_t>(step));
    for (size_t k = 0; k < state.size(); ++k)
      if (state[k].dtype == DType::kBool) state[k] = others[k];
    const Expected expected = expected_of(model, state);
    Tensors again = state;
    const auto found = alone.run(state), repeated = shared.run(again);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    ASSERT_TRUE(repeated.ok()) << repeated.error().to_string();
    ASSERT_NO_FATAL_FAILURE(expect_near(state, expected.inputs, "input"));
    ASSERT_NO_FATAL_FAILURE(expect_near(*found, expected.outputs, "output"));
    for (size_t k = 0; k < found->size(); ++k)
      EXPECT_EQ((*repeated)[k].bytes, (*found)[k].bytes) << "output " << k << " by more threads";
    for (size_t k = 0; k < state.size(); ++k)
      EXPECT_EQ(again[k].bytes, state[k].bytes) << "input " << k << " by more threads";
  }
}

constexpr int kParts = 4;
class RandomState : public testing::TestWithParam<int> {};

TEST_P(RandomState, BecomesWhatItsOperatorsGive) {
  check_seeds(GetParam(), kParts, 60, check_model);
}

INSTANTIATE_TEST_SUITE_P(Part, RandomState, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
