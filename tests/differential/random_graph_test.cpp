// Random graphs: interpreted against compiled, fused against not, scheduled against plain loops,
// one thread against three. TILEWRIGHT_GRAPHS=n tries more of them, TILEWRIGHT_SEED=n one alone.
#include <gtest/gtest.h>

#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

constexpr int kParts = 8;
const CompiledForm kForms[] = {{true, true, true}, {true, false}, {false, true}, {false, false}};

void check_graph(uint64_t seed) {
  const RandomGraph r = make_random_graph(seed);
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(r.graph));
  auto oracle = interpret_graph(r.graph, r.inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  const std::vector<double> allowed = tolerances(r.graph, r.inputs, *oracle);
  for (size_t f = 0; f < std::size(kForms); ++f) {
    if (f != 0 && f != 1 + seed % 3) continue;  // all forms in turn: compiling takes the time
    SCOPED_TRACE(std::string(kForms[f].fuse ? "fused" : "unfused") +
                 (kForms[f].schedule ? ", scheduled" : ", plain loops"));
    auto runs = run_compiled(r.graph, r.inputs, kForms[f], {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    expect_as_interpreted(*runs, *oracle, allowed);
  }
}

class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, AgreeInAllForms) { check_seeds(GetParam(), kParts, 200, check_graph); }

INSTANTIATE_TEST_SUITE_P(Part, RandomGraphs, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
