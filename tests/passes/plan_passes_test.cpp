// The passes over plans and programs are run, checked and replayed like all others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/module_text/parser_graph.h"
#include "ir/module_text/printer_program.h"
#include "passes/lower.h"
#include "passes/planner.h"
#include "passes/reproducer.h"

namespace tilewright::passes {
namespace {

// A slice that lies in its operand, and a sum that nobody reads.
constexpr const char* kGraph = R"(graph plans {
  input x: f32[8, 4]
  unused: f32[8, 4] = add(x, x) group 0
  const from: i64[1] = [0]
  const to: i64[1] = [4]
  s: f32[4, 4] = slice(x, from, to) group 1
  y: f32[4, 4] = neg(s) group 2
  output y as "y"
}
)";

class PlanPasses : public testing::Test {
 protected:
  void SetUp() override {
    auto graph = ir::parse_graph(kGraph);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    graph_ = std::move(*graph);
  }
  // The file that a note of the error names; gone after the test.
  static std::string reproducer_of(const Error& error) {
    const std::string note = error.notes.empty() ? "" : error.notes.back();
    const size_t at = note.find("reproduce ");
    return at == std::string::npos ? "" : note.substr(at + 10);
  }
  ir::Graph graph_;
  LowerOptions options_;
};

TEST_F(PlanPasses, EachLeavesWhatItsNameSays) {
  GraphPlan plan(graph_, 0);
  const auto passes = plan_passes();
  std::vector<std::string> texts;
  for (size_t i = 0; i < passes.size(); ++i) {
    Status s = run_pipeline(passes.subspan(i, 1), plan, options_);
    ASSERT_TRUE(s.ok()) << passes[i].name << ": " << s.error().to_string();
    texts.push_back(to_text(plan));
  }
  EXPECT_EQ(texts[0],
            "plan plans {\n  s lies in x at (0, 0) by (1 of d0, 1 of d1), from byte 0\n}\n");
  EXPECT_NE(texts[2].find("kernel add (x)"), std::string::npos) << texts[2];
  EXPECT_EQ(texts[3].find("kernel add"), std::string::npos) << texts[3];
  EXPECT_NE(texts[3].find("placed (x, from, to) -> (s)"), std::string::npos) << texts[3];
}

// A part lies in the other value as it would in memory of its own.
TEST_F(PlanPasses, APartInAnotherOrderBreaksARule) {
  GraphPlan plan(graph_, 0);
  plan.aliases = choose_aliases(graph_);
  ASSERT_EQ(plan.aliases.size(), 1u);
  EXPECT_TRUE(verify(plan, false).ok());
  for (int way = 0; way < 3; ++way) {
    ir::Graph other = graph_;
    GraphPlan broken(other, 0);
    broken.aliases = plan.aliases;
    auto& [v, placement] = *broken.aliases.begin();
    if (way == 0) other.value(v).layout = ir::permuted_layout({1, 0});
    if (way == 1) other.value(placement.in).layout = ir::permuted_layout({1, 0});
    if (way == 2) placement.offset = 64;
    Status s = verify(broken, false);
    ASSERT_FALSE(s.ok()) << way;
    EXPECT_NE(s.error().notes[0].find("s has another order in memory than x"), std::string::npos);
  }
}

TEST_F(PlanPasses, ABrokenPlanNamesThePassAndReplays) {
  constexpr PlanPass kBroken[] = {
      {"choose_aliases", false, [](GraphPlan& g) { g.aliases = choose_aliases(g.graph); }},
      {"order_steps", true, [](GraphPlan& g) { g.steps.clear(); }}};
  GraphPlan plan(graph_, 0);
  Status s = run_pipeline(std::span<const PlanPass>(kBroken), plan, options_);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().message, "pass order_steps: the plan breaks 1 rule");
  EXPECT_EQ(s.error().notes[0], "y is a result and made by no step");
  const std::string path = reproducer_of(s.error());
  std::ifstream in(path);
  std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_NE(all.find("form: plan"), std::string::npos) << all;
  EXPECT_NE(all.find("passes: choose_aliases order_steps"), std::string::npos) << all;
  // By the real passes, of which collect_steps is not on the list: no step for the result.
  Status again = replay(path, nullptr);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "pass order_steps: the plan breaks 1 rule");
  std::filesystem::remove(reproducer_of(again.error()));
  std::filesystem::remove(path);
}

TEST_F(PlanPasses, AFolderKeepsTheLastReproducers) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "reproducers-XXXXXX").string();
  ASSERT_TRUE(mkdtemp(folder.data()));
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", folder.c_str(), 1);
  std::ofstream(folder + "/tilewright-reproducer.of-another") << "stays";
  constexpr PlanPass kBroken[] = {{"order_steps", true, [](GraphPlan& g) { g.steps.clear(); }}};
  for (int i = 0; i < 40; ++i) {
    GraphPlan plan(graph_, 0);
    const Status s = run_pipeline(std::span<const PlanPass>(kBroken), plan, options_);
    ASSERT_FALSE(s.ok());
    EXPECT_TRUE(fs::exists(reproducer_of(s.error())));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), std::min(i + 1, 32) + 1);
  }
  EXPECT_TRUE(fs::exists(folder + "/tilewright-reproducer.of-another"));
  if (before)
    ::setenv("TMPDIR", kept.c_str(), 1);
  else
    ::unsetenv("TMPDIR");
  fs::remove_all(folder);
}

TEST_F(PlanPasses, EveryRuleOfPlansIsChecked) {
  const struct {
    void (*breaks)(GraphPlan&);
    const char* phrase;
  } cases[] = {
      {[](GraphPlan& g) { g.aliases.begin()->second.in = ir::kNone; }, "s lies in no value"},
      {[](GraphPlan& g) { g.aliases.begin()->second.in = g.aliases.begin()->first; },
       "s lies in a value without memory of its own"},
      {[](GraphPlan& g) { g.aliases.begin()->second.start.pop_back(); }, "s has no start"},
      {[](GraphPlan& g) { g.aliases.begin()->second.step.pop_back(); },
       "s has a dimension without a place"},
      {[](GraphPlan& g) { std::swap(g.steps[0], g.steps[1]); }, "s is read before the step"},
      {[](GraphPlan& g) { g.steps.push_back(g.steps[0]); }, "s is made by two steps"},
      {[](GraphPlan& g) { g.steps.erase(g.steps.begin()); }, "s is read and made by no step"},
      {[](GraphPlan& g) { g.steps.pop_back(); }, "y is a result and made by no step"},
  };
  for (const auto& c : cases) {
    GraphPlan plan(graph_, 0);
    ASSERT_TRUE(run_pipeline(plan_passes(), plan, options_).ok());
    ASSERT_TRUE(verify(plan, true).ok());
    c.breaks(plan);
    Status s = verify(plan, true);
    ASSERT_FALSE(s.ok()) << c.phrase;
    EXPECT_NE(s.error().to_string().find(c.phrase), std::string::npos) << s.error().to_string();
  }
}

TEST_F(PlanPasses, AProgramWithoutLifetimesIsRefusedAndReplays) {
  auto flat = [&](ir::Kernel k, const std::set<std::string>&) -> Result<LoweredKernel> {
    TW_ASSIGN(k, lower_to_flat(std::move(k), options_));
    return LoweredKernel{std::move(k), ""};
  };
  auto program = plan_program(graph_, options_, flat);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  auto none = [](ir::Program p, const LowerOptions&) -> Result<ir::Program> {
    for (ir::ProgramBuffer& b : p.buffers) b.first_use = b.last_use = 7;
    return p;
  };
  const ProgramPass broken[] = {{"set_lifetimes", Change::kNothing, none}};
  auto result = run_pipeline(std::span<const ProgramPass>(broken), *program, options_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().to_string().find("outside of its life 7..7"), std::string::npos)
      << result.error().to_string();
  const std::string path = reproducer_of(result.error());
  Status again = replay(path, nullptr);
  EXPECT_TRUE(again.ok()) << again.error().to_string();  // the real pass
  std::filesystem::remove(path);
  std::vector<PassTime> times = pass_times();
  for (const char* name : {"choose_aliases", "collect_steps", "order_steps", "drop_unused_steps",
                           "share_kernels", "set_lifetimes"})
    EXPECT_TRUE(std::any_of(times.begin(), times.end(), [&](const PassTime& t) {
      return t.name == name;
    })) << name;
}

// A result of an extent that the run finds, given twice; one that no kernel ever stores to, because
// it has no elements: both are good programs.
TEST_F(PlanPasses, ResultsOfExtentsThatTheRunDefines) {
  for (const char* extent : {"4", "0"}) {
    auto graph = ir::parse_graph("graph g {\n  input x: f32[" + std::string(extent) +
                                 "]\n  y: i64[1, n] = nonzero(x) defines(n)\n"
                                 "  output y as \"y\"\n  output y as \"again\"\n}\n");
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    auto program = lower(std::move(*graph), options_);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    const auto& buffers = program->buffers;
    const ir::ProgramBuffer& view = buffers[static_cast<size_t>(program->outputs.at(1))];
    EXPECT_EQ(view.alias_of, program->outputs.at(0)) << extent;
    EXPECT_FALSE(view.dynamic) << extent;
  }
}

}  // namespace
}  // namespace tilewright::passes
