// Exact kernels of random graphs: results are the same in every bit whatever is fused, how values
// are laid out, what is folded, how large the caches are and how many threads run.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

constexpr int kParts = 4;

struct NamedForm {
  const char* name;
  CompiledForm form;
};
std::vector<NamedForm> forms() {
  std::vector<NamedForm> all{{"a kernel per node", {false, true}},
                             {"fused", {true, true}},
                             {"folded", {true, true, true}},
                             {"small caches", {true, true, true}}};
  all.back().form.small_caches = true;
  for (NamedForm& f : all) f.form.numerics = Numerics::kExact;
  return all;
}

// The first element that differs; -1: none. NaN is one value.
int64_t first_difference(const HostTensor& a, const HostTensor& b) {
  const auto size = static_cast<size_t>(byte_size(a.dtype));
  for (int64_t i = 0; i < a.size(); ++i) {
    const auto at = static_cast<size_t>(i) * size;
    if (std::equal(a.bytes.begin() + static_cast<long>(at),
                   a.bytes.begin() + static_cast<long>(at + size),
                   b.bytes.begin() + static_cast<long>(at)))
      continue;
    if (!is_float(a.dtype) || !(std::isnan(element(a, i)) && std::isnan(element(b, i)))) return i;
  }
  return -1;
}

void check_graph(uint64_t seed) {
  const RandomGraph r = make_random_graph(seed);
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(r.graph));
  std::vector<Tensors> results;
  for (const NamedForm& f : forms()) {
    auto runs = run_compiled(r.graph, r.inputs, f.form, {1, 3});
    ASSERT_TRUE(runs.ok()) << f.name << ": " << runs.error().to_string();
    if (results.empty()) results = *runs;
    for (const Tensors& run : *runs)
      for (size_t k = 0; k < run.size(); ++k) {
        const HostTensor& expected = results[0][k];
        ASSERT_EQ(run[k].shape, expected.shape);
        const int64_t at = first_difference(run[k], expected);
        EXPECT_EQ(at, -1) << f.name << ": output " << k << " has " << element(run[k], at)
                          << ", not " << element(expected, at) << " (difference "
                          << element(run[k], at) - element(expected, at) << ")";
      }
  }
}

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

class ExactGraphs : public testing::TestWithParam<int> {};

TEST_P(ExactGraphs, KeepEveryBit) {
  const uint64_t count = from_environment("TILEWRIGHT_GRAPHS", 80);
  const uint64_t only = from_environment("TILEWRIGHT_SEED", ~uint64_t{0});
  for (auto seed = static_cast<uint64_t>(GetParam()); seed < count && !HasFailure(); seed += kParts)
    if (only == ~uint64_t{0}) check_graph(seed);
  if (only != ~uint64_t{0} && GetParam() == 0) check_graph(only);
}

INSTANTIATE_TEST_SUITE_P(Part, ExactGraphs, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
