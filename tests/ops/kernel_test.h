// The set-up of tests that compile graphs for one CPU after the other and hold them against the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include "tests/ops/graph_oracle.h"

namespace tilewright {

// GetParam() is a CPU as describe_machine takes it.
class KernelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!runs_here(GetParam())) GTEST_SKIP() << "this machine lacks what " << GetParam() << " has";
  }
  HostTensor random(DType t, const Shape& shape) { return random_tensor(t, shape, random_); }

  // Compiles the graph in each form and runs it with 1 and with 3 threads, which must agree in
  // every bit. `roundings`: of one element, each of half a unit of the largest value.
  void expect_equal(const GraphCall& call, double roundings,
                    const std::vector<CompiledForm>& forms = {{}}) {
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    for (CompiledForm form : forms) {
      SCOPED_TRACE(testing::Message()
                   << (form.small_caches ? "small caches" : "the caches of this machine")
                   << (form.fold ? ", constants folded" : ""));
      form.cpu = GetParam();
      auto runs = run_compiled(call.graph, call.inputs, form, {1, 3});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (size_t k = 0; k < oracle->outputs.size(); ++k) {
        auto d = difference((*runs)[0][k], oracle->outputs[k]);
        ASSERT_TRUE(d.has_value()) << call.graph.output_names[k];
        EXPECT_LE(*d, roundings * epsilon((*runs)[0][k].dtype) * oracle->largest)
            << call.graph.output_names[k];
        EXPECT_EQ((*runs)[1][k].bytes, (*runs)[0][k].bytes) << call.graph.output_names[k];
      }
      if (HasFailure()) return;
    }
  }

  // How many decisions of the graph's are answered like that.
  static size_t count_decided(const GraphCall& call, const std::string& label,
                              CompiledForm form = {}) {
    form.cpu = GetParam();
    const auto decisions = graph_decisions(call.graph, form);
    EXPECT_TRUE(decisions.ok());
    size_t n = 0;
    if (decisions.ok())
      for (const passes::Decision& d : *decisions)
        n += !d.labels.empty() && d.labels[static_cast<size_t>(d.answer)] == label;
    return n;
  }

  std::mt19937_64 random_{1};
};

}  // namespace tilewright
