// A model is tuned, and what was found is used by whoever compiles it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "autotune/database/database.h"
#include "autotune/database/task.h"
#include "codegen/compile_cached.h"
#include "frontends/compiler/tune.h"
#include "ir/module_text/parser_graph.h"
#include "passes/schedule/rules/choose_trace.h"
#include "runtime/session.h"

namespace tilewright {
namespace {

ir::Graph model() {
  std::vector<float> weights(300 * 64);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[40, 300]\n  const w: f32[300, 64] = #0\n"
      "  t: f32[40, 64] = matmul(x, w)\n  y: f32[40, 64] = softmax(t) {axis = 1}\n"
      "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {300, 64}, weights)});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *graph;
}
ir::Graph convolution() {
  std::vector<float> weights(40 * 20 * 7, 0.01f);
  auto graph = ir::parse_graph(
      "graph g {\n  input x: f32[1, 20, 17]\n  const w: f32[40, 20, 7] = #0\n"
      "  y: f32[1, 40, 17] = conv(x, w) {pads = [3, 3], strides = [1]}\n"
      "  output y as \"y\"\n}\n",
      {ir::make_constant_of<float>(DType::kFloat32, {40, 20, 7}, weights)});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *graph;
}
Tensor input(Shape shape = {40, 300}) {
  Tensor t = Tensor::allocate(DType::kFloat32, shape).value();
  for (int64_t i = 0; i < t.element_count(); ++i)
    t.data_as<float>()[i] = std::sin(static_cast<float>(i));
  return t;
}
Result<autotune::TuneResult> tuned(const CompileOptions& options, const autotune::TuneOptions& how,
                                   const ir::Graph& graph = model(), Tensor x = input()) {
  TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
  const std::vector<std::vector<Tensor>> inputs{{std::move(x)}};
  return autotune::tune_model(graph, lower, assemble_options(options, lower.machine, "g"), inputs,
                              how);
}

TEST(TuneModel, MeasuresCandidatesOfEveryKernel) {
  size_t reports = 0, trials = 0;
  autotune::TuneOptions how{.seconds = 60, .trials = 6};
  how.progress = [&](const autotune::TuneProgress& p) {
    ++reports;
    EXPECT_GE(p.trials, trials);
    trials = p.trials;
    EXPECT_LE(p.improved, p.kernels);
  };
  const auto result = tuned({}, how);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->kernels.size(), 2u);
  EXPECT_GE(result->progress.trials, 6u);
  EXPECT_EQ(reports, result->progress.rounds);
  EXPECT_GT(result->runs.pairs, 6u);
  for (const autotune::TunedKernel& k : result->kernels) {
    EXPECT_GT(k.us, 0) << k.name;
    EXPECT_GT(k.calls, 0) << k.name;
    EXPECT_GT(k.bytes, 0) << k.name;
    EXPECT_GT(k.expected_us, 0) << k.name;
    EXPECT_FALSE(k.trials.empty()) << k.name;
    EXPECT_TRUE(!k.improved || k.gain.high < 1) << k.name;
  }
}
TEST(TuneModel, KeepsTheHistoryOfItsTrials) {
  const auto result = tuned({}, {.seconds = 60, .trials = 12});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  ASSERT_EQ(result->rounds.size(), result->progress.rounds);
  size_t trials = 0;
  for (const autotune::TunedKernel& k : result->kernels) {
    trials += k.trials.size();
    double before = 0;
    for (const autotune::Trial& t : k.trials) {
      EXPECT_GT(t.expected_us, 0) << k.name;
      EXPECT_GE(t.seconds, before) << k.name;
      before = t.seconds;
      EXPECT_GT(t.measured.pairs, 0u) << k.name << ": " << t.refused;
      EXPECT_TRUE(!t.confirmed || t.measured.high < 1) << k.name;
    }
    EXPECT_EQ(k.changes.empty(), !k.improved) << k.name;
    for (const passes::Decision& d : k.changes) {
      EXPECT_EQ(d.values, (std::vector<int64_t>{d.usual, d.answer})) << d.name;
      EXPECT_EQ(d.microseconds.size(), 2u) << d.name;
      EXPECT_EQ(k.best.answers.at(d.name), d.answer);
    }
  }
  EXPECT_EQ(trials, result->progress.trials);
  for (size_t r = 1; r < result->rounds.size(); ++r)
    EXPECT_GE(result->rounds[r].saved, result->rounds[r - 1].saved);
}
// Answers differ, loops may not, and machine code less often: of those that come out alike one is measured.
TEST(TuneModel, MeasuresNoCodeTwice) {
  const auto lower = lower_options({});
  const auto backend = codegen::open_backend();
  ASSERT_TRUE(lower.ok() && backend.ok());
  const auto result = tuned({}, {.seconds = 60, .trials = 80}, convolution(), input({1, 20, 17}));
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  size_t forms = 0;
  const auto compare =
      [&](ir::Kernel k, const std::set<std::string>& constants) -> Result<passes::LoweredKernel> {
    std::set<std::string> codes;
    for (const autotune::TunedKernel& t : result->kernels) {
      if (t.name != k.name) continue;
      for (const autotune::Trial& trial : t.trials) {
        passes::LowerOptions as_tried = *lower;
        as_tried.find_schedule = [&](const ir::Kernel& same, const std::set<std::string>& known) {
          return std::optional(
              passes::choose_trace(
                  same, {.machine = &lower->machine, .constants = known, .answers = trial.answers})
                  .value()
                  .trace);
        };
        TW_ASSIGN(passes::LoweredKernel lowered, passes::lower_kernel(k, constants, as_tried));
        lowered.kernel.name = codegen::content_symbol(lowered.kernel);
        EXPECT_TRUE(codes.insert(lowered.kernel.name).second) << t.name;
        TW_ASSIGN(const auto compiled, codegen::compile_cached(**backend, {&lowered.kernel},
                                                               lower->machine, 1, {}, nullptr));
        EXPECT_TRUE(codes.insert(codegen::object_code(compiled[0], lowered.kernel.name)).second);
        ++forms;
      }
    }
    return passes::lower_kernel(std::move(k), constants, *lower);
  };
  // Kernels are those of the graph as tuning left it.
  const auto program = passes::lower_fused(result->graph.form.graph, *lower, compare);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_GE(forms, 40u);
}
TEST(TuneModel, EndsWhenItIsTold) {
  autotune::TuneOptions how{.seconds = 600};
  how.stop = [] { return true; };
  const auto result = tuned({}, how);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->progress.trials, 0u);
  for (const autotune::TunedKernel& k : result->kernels) EXPECT_FALSE(k.improved);
}

// The schedules of an executable, one text a kernel.
std::vector<std::string> schedules_with(const std::string& database, bool guess = false) {
  CompileOptions options;
  options.database = database;
  options.guess = guess;
  auto executable = compile_in_memory(model(), options);
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  std::vector<std::string> found;
  if (executable.ok())
    for (const KernelDesc& k : (*executable)->variants[0].kernels) found.push_back(k.schedule);
  return found;
}

TEST(Database, SchedulesOfItComeFirst) {
  const std::string path = testing::TempDir() + "used_" + std::to_string(getpid()) + ".jsonl";
  const std::vector<std::string> usual = schedules_with("");
  EXPECT_EQ(schedules_with(path), usual);  // no file
  // Whatever the times: a form of the first kernel that is another one.
  auto lower = lower_options({});
  ASSERT_TRUE(lower.ok());
  auto db = autotune::Database::open(path);
  ASSERT_TRUE(db.ok());
  autotune::TuneOptions how{.seconds = 60, .trials = 1};
  const auto result = tuned({}, how);
  ASSERT_TRUE(result.ok());
  autotune::Record r{.task = result->kernels[0].task,
                     .device = autotune::device_key(lower->machine, Numerics::kStandard),
                     .schedule = {},
                     .usual_us = 1,
                     .tuned_us = 1,
                     .low = 1,
                     .high = 1};
  ASSERT_TRUE(db->append(r).ok());  // no step at all: plain loops
  const std::vector<std::string> found = schedules_with(path);
  ASSERT_EQ(found.size(), usual.size());
  size_t plain = 0;
  for (size_t k = 0; k < found.size(); ++k) plain += found[k].empty() && !usual[k].empty();
  EXPECT_EQ(plain, 1u);
  // Steps that are not legal are as good as none.
  r.schedule = {{"vectorize", {"no_such_loop"}, {}}};
  ASSERT_TRUE(db->append(r).ok());
  EXPECT_EQ(schedules_with(path), usual);
  std::filesystem::remove(path);
}

// Answers of a kernel that is like one of the model's, on another machine: followed only by who guesses.
TEST(Database, AnswersOfLikeKernelsAreGuesses) {
  const std::string path = testing::TempDir() + "guessed_" + std::to_string(getpid()) + ".jsonl";
  const std::vector<std::string> usual = schedules_with("");
  const auto result = tuned({}, {.seconds = 60, .trials = 4});
  ASSERT_TRUE(result.ok());
  auto db = autotune::Database::open(path);
  ASSERT_TRUE(db.ok());
  for (const autotune::TunedKernel& k : result->kernels) {
    if (k.trials.empty()) continue;
    const autotune::Record like{.task = "of other extents",
                                .device = "there",
                                .family = k.family,
                                .answers = k.trials[0].answers,
                                .schedule = {},
                                .usual_us = 1,
                                .tuned_us = 1,
                                .low = 1,
                                .high = 1};
    ASSERT_TRUE(db->append(like).ok());
  }
  ASSERT_FALSE(db->records().empty());
  EXPECT_EQ(schedules_with(path), usual);
  EXPECT_NE(schedules_with(path, true), usual);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tilewright
