// What graph passes decide, as candidates: forms, where they differ, and that a database's answers are followed.
#include "autotune/tune_graph.h"

#include <gtest/gtest.h>

#include "autotune/database/task.h"
#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {
namespace {

using passes::Answers;
using passes::Decision;

// Two convolutions that are alike and one that is not.
ir::Graph graph() {
  const auto weights = [](int64_t out, int64_t in) {
    std::vector<float> w(static_cast<size_t>(out * in * 9));
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 17) / 17 - 0.4f;
    return ir::make_constant_of<float>(DType::kFloat32, {out, in, 3, 3}, w);
  };
  auto g = ir::parse_graph(R"(graph g {
  input x: f32[1, 32, 24, 24]
  const w1: f32[32, 32, 3, 3] = #0
  const w2: f32[32, 32, 3, 3] = #0
  const w3: f32[8, 32, 3, 3] = #1
  a: f32[1, 32, 24, 24] = conv(x, w1) {pads = [1, 1, 1, 1], strides = [1, 1]} from "node_a"
  b: f32[1, 32, 24, 24] = relu(a) from "node_b"
  c: f32[1, 32, 24, 24] = conv(b, w2) {pads = [1, 1, 1, 1], strides = [1, 1]} from "node_c"
  d: f32[1, 32, 24, 24] = relu(c) from "node_d"
  e: f32[1, 8, 24, 24] = conv(d, w3) {pads = [1, 1, 1, 1], strides = [1, 1]} from "node_e"
  output e as "e"
})",
                           {weights(32, 32), weights(8, 32)});
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  return std::move(*g);
}
passes::LowerOptions lower() {
  auto options = lower_options({});
  EXPECT_TRUE(options.ok()) << options.error().to_string();
  return std::move(*options);
}
const passes::Decision& decision(const GraphForm& form, const std::string& name) {
  for (const passes::Decision& d : form.decisions)
    if (d.name == name) return d;
  ADD_FAILURE() << name;
  return form.decisions.front();
}

TEST(GraphForm, FormsDifferWhereTheirAnswersDo) {
  const ir::Graph g = graph();
  const auto usual = graph_form(g, lower(), {});
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  const passes::Decision& first = decision(*usual, "a.winograd");
  const int64_t other = first.answer == 0 ? 2 : 0;
  const auto changed = graph_form(g, lower(), {{"a.winograd", other}});
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  EXPECT_EQ(decision(*changed, "a.winograd").answer, other);
  const std::set<std::string> here = differing_nodes(*usual, *changed);
  EXPECT_FALSE(here.empty());
  EXPECT_LT(here.size(), usual->tasks.size());
  EXPECT_TRUE(differing_nodes(*usual, *usual).empty());
  EXPECT_FALSE(graph_form(g, lower(), {{"nobody.winograd", 2}}).ok());
  EXPECT_FALSE(graph_form(g, lower(), {{"a.winograd", 3}}).ok());
}

TEST(GraphForm, NodesThatAModelRepeatsAreAlike) {
  const auto form = graph_form(graph(), lower(), {});
  ASSERT_TRUE(form.ok()) << form.error().to_string();
  EXPECT_EQ(decision(*form, "a.winograd").alike, decision(*form, "c.winograd").alike);
  EXPECT_NE(decision(*form, "a.winograd").alike, decision(*form, "e.winograd").alike);
}

// Another answer of each kernel than the usual one, by its task.
std::map<std::string, Answers> other_answers(const ir::Graph& fused) {
  std::map<std::string, Answers> found;
  const auto options = lower();
  const auto ask = [&](ir::Kernel k, const std::set<std::string>& constants) {
    const auto choice =
        passes::choose_trace(k, {.machine = &options.machine, .constants = constants});
    EXPECT_TRUE(choice.ok()) << choice.error().to_string();
    for (const Decision& d : choice->decisions)
      for (const int64_t value : d.values)
        if (value != d.answer) found[task_key(k, constants)] = {{d.name, value}};
    return passes::lower_kernel(std::move(k), constants, options);
  };
  EXPECT_TRUE(passes::lower_fused(fused, options, ask).ok());
  return found;
}

// Of kernels, what was confirmed here alone.
TEST(GraphForm, HasTheSchedulesOfKernelsThatWereTuned) {
  const ir::Graph g = graph();
  const auto usual = graph_form(g, lower(), {});
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  const auto answers = other_answers(usual->graph);
  ASSERT_GE(answers.size(), 2u);
  for (const bool recorded : {true, false}) {
    const auto form = graph_form(g, lower(), {}, [&](const std::string& task, const std::string&) {
      return Known{.answers = answers.at(task),
                   .recorded = recorded && task == answers.begin()->first};
    });
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    ASSERT_EQ(form->schedules.size(), recorded ? 1u : 0u);
    EXPECT_TRUE(!recorded || form->schedules.count(answers.begin()->first));
  }
}

TEST(GraphForm, KeysKnowTheGraph) {
  ir::Graph other = graph();
  EXPECT_EQ(graph_key(other), graph_key(graph()));
  other.updates.push_back({0, 0});  // where results go is no other work
  EXPECT_EQ(graph_key(other), graph_key(graph()));
  other.nodes.back().attributes["group"] = int64_t{2};
  EXPECT_NE(graph_key(other), graph_key(graph()));
}

TEST(GraphAnswers, AreFollowedWhereTheGraphHasThem) {
  const auto kernels_with = [](passes::Answers answers) {
    passes::LowerOptions options = lower();
    options.find_answers = [&](const ir::Graph&) { return answers; };
    auto program = passes::lower(graph(), options);
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    std::multiset<std::string> names;
    for (const ir::Kernel& k : program->kernels) names.insert(k.name);
    return names;
  };
  const auto usual = kernels_with({});
  const int64_t answer = decision(*graph_form(graph(), lower(), {}), "a.winograd").answer;
  EXPECT_NE(kernels_with({{"a.winograd", answer == 0 ? 2 : 0}}), usual);
  EXPECT_EQ(kernels_with({{"a.winograd", answer}}), usual);
  // One that the graph does not have costs all of them, and no error.
  EXPECT_EQ(kernels_with({{"a.winograd", answer == 0 ? 2 : 0}, {"nobody.winograd", 2}}), usual);
}

// Each other answer is tried, on alike decisions at once, and what is best gives the same results.
TEST(TuneGraph, TriesWhatElseThereIs) {
  const ir::Graph g = graph();
  const auto options = lower();
  const ModelCompiler compiler(options, assemble_options({}, options.machine, "g"), 1);
  Tensor x = Tensor::allocate(DType::kFloat32, {1, 32, 24, 24}).value();
  for (int64_t i = 0; i < x.element_count(); ++i)
    x.data_as<float>()[i] = static_cast<float>(i % 23) / 23;
  const std::vector<std::vector<Tensor>> inputs{{x}};
  std::mt19937 random(1);
  const auto tuned = tune_graph(g, compiler, inputs, {}, random);
  ASSERT_TRUE(tuned.ok()) << tuned.error().to_string();
  EXPECT_FALSE(tuned->trials.empty());
  size_t both = 0;
  for (const GraphTrial& t : tuned->trials) {
    EXPECT_EQ(t.refused, "");
    EXPECT_GT(t.measured.pairs, 0u);
    both += t.answers.size() == 2;
  }
  EXPECT_GT(both, 0u);
  for (const auto& [name, value] : tuned->form.answers)
    EXPECT_EQ(decision(tuned->form, name).answer, value);
  // From good answers it starts, and unknown ones are left out.
  GraphTuneOptions known{.from = {.answers = {{"nobody.winograd", 2}, {"e.winograd", 0}}}};
  known.stop = [] { return true; };
  const auto again = tune_graph(g, compiler, inputs, known, random);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(again->trials.empty());
}

}  // namespace
}  // namespace tilewright::autotune
