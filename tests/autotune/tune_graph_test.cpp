// What graph passes decide, as candidates: forms, where they differ, and that a database's answers are followed.
#include "autotune/tune_graph.h"

#include <gtest/gtest.h>

#include "autotune/database/task.h"
#include "autotune/graph_candidates.h"
#include "autotune/search/priced_form.h"
#include "frontends/compiler/compiler.h"
#include "ir/module_text/parser_graph.h"
#include "passes/schedule/rules/choose_trace.h"
#include "tests/autotune/made_up_times.h"
#include "tests/autotune/random_seeds.h"

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

// Microseconds of these nodes of a form, each kernel with its usual schedule.
double us(const GraphForm& form, const std::set<std::string>& nodes, const MadeUpTimes& times) {
  const auto options = lower();
  std::map<std::string, double> of_task;
  const auto add = [&](ir::Kernel k, const std::set<std::string>& constants) {
    auto lowered = passes::lower_kernel(k, constants, options);
    if (lowered.ok())
      of_task[task_key(k, constants)] =
          times.of(k.name, passes::to_string(*schedule_of(k, constants, options, {})));
    return lowered;
  };
  EXPECT_TRUE(passes::lower_fused(form.graph, options, add).ok());
  double sum = 0;
  for (const std::string& n : nodes)
    for (const std::string& task : form.tasks.at(n)) sum += of_task.at(task);
  return sum;
}

// Each other answer is tried, on alike decisions at once. One that is faster has to be so twice, and what is best in
// the end is faster than the usual form, or nothing is: times are made up, and say what must come out.
TEST(TuneGraph, FollowsFromTheTimes) {
  const ir::Graph g = graph();
  const auto options = lower();
  const ModelCompiler compiler(options, assemble_options({}, options.machine, "g"), 1);
  Tensor x = Tensor::allocate(DType::kFloat32, {1, 32, 24, 24}).value();
  for (int64_t i = 0; i < x.element_count(); ++i)
    x.data_as<float>()[i] = static_cast<float>(i % 23) / 23;
  const std::vector<std::vector<Tensor>> inputs{{x}};
  const GraphForm usual = *graph_form(g, options, {});
  size_t confirmed = 0, both = 0;
  for (const uint32_t seed : random_seeds(2)) {
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
    std::mt19937 random(seed);
    MadeUpTimes times{.seed = seed};
    const auto tuned = tune_graph(g, compiler, inputs, {.measure = times.as_measure()}, random);
    ASSERT_TRUE(tuned.ok()) << tuned.error().to_string();
    GraphForm best = usual;
    std::set<Answers> once;  // those that were faster
    Answers taken;
    for (const GraphTrial& t : tuned->trials) {
      ASSERT_EQ(t.refused, "");
      both += t.answers.size() == 2;
      const GraphForm other = *graph_form(g, options, merged(best.answers, t.answers));
      const double here = us(best, differing_nodes(best, other), times),
                   there = us(other, differing_nodes(other, best), times);
      EXPECT_NEAR(t.measured.ratio, there / here, 1e-4) << t.alike << " " << t.answer;
      const bool faster = there / here < kWorthwhile;
      EXPECT_EQ(t.confirmed, faster && once.count(t.answers)) << t.alike << " " << t.answer;
      if (faster && !t.confirmed) once.insert(t.answers);
      if (!t.confirmed) continue;
      ++confirmed;
      EXPECT_EQ(once.erase(t.answers), 1u);
      taken = merged(taken, t.answers);
      best = *graph_form(g, options, taken);
    }
    EXPECT_TRUE(once.empty());
    EXPECT_EQ(tuned->form.answers, taken);
    if (!taken.empty()) {
      const double before = us(usual, differing_nodes(usual, best), times),
                   after = us(best, differing_nodes(best, usual), times);
      EXPECT_NEAR(tuned->gain.ratio, after / before, 1e-4);
      EXPECT_LT(after, before);
    }
    for (const auto& [name, value] : tuned->form.answers)
      EXPECT_EQ(decision(tuned->form, name).answer, value);
  }
  EXPECT_GT(both, 0u);
  EXPECT_GT(confirmed, 0u);
}
// From good answers it starts, and unknown ones are left out.
TEST(TuneGraph, StartsFromWhatIsKnown) {
  const ir::Graph g = graph();
  const auto options = lower();
  const ModelCompiler compiler(options, assemble_options({}, options.machine, "g"), 1);
  const std::vector<std::vector<Tensor>> inputs{
      {Tensor::allocate(DType::kFloat32, {1, 32, 24, 24}).value()}};
  const Answers other{
      {"e.winograd", decision(*graph_form(g, options, {}), "e.winograd").answer == 0 ? 2 : 0}};
  const GraphForm usual = *graph_form(g, options, {}), known = *graph_form(g, options, other);
  MadeUpTimes times;
  const double ratio = us(known, differing_nodes(known, usual), times) /
                       us(usual, differing_nodes(usual, known), times);
  GraphTuneOptions how{.from = {.answers = merged({{"nobody.winograd", 2}}, other)}};
  how.stop = [] { return true; };
  how.measure = times.as_measure();
  std::mt19937 random(1);
  const auto tuned = tune_graph(g, compiler, inputs, how, random);
  ASSERT_TRUE(tuned.ok()) << tuned.error().to_string();
  EXPECT_TRUE(tuned->trials.empty());
  EXPECT_EQ(tuned->form.answers, ratio < 1 ? other : Answers()) << ratio;
}

}  // namespace
}  // namespace tilewright::autotune
