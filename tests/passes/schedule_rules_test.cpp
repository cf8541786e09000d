// What each rule decides and writes, for graphs that are lowered to their kernels: a rule that
// drops a step, or no longer applies, changes a file of cases (rule_cases.txt):
//
//   === name of the case
//   machine: vectors BYTES, registers N, threads N[, features NAMES][, exact][, third cache slow]
//   graph ...          (constants as #f32[2, 3]: zeros, or #i64(1, 2): values)
//   --- schedules
//   kernel k0_...
//   decisions and steps
//
// With the environment variable TILEWRIGHT_UPDATE_GOLDEN=1 what follows "--- schedules" is written
// anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/module_text/parser_graph.h"
#include "passes/lower.h"
#include "passes/plan_program.h"
#include "passes/schedule/rules/choose_trace.h"
#include "passes/schedule/rules/rule.h"
#include "tests/passes/rule_cases.h"

namespace tilewright::passes {
namespace {

std::string schedule_text(const RuleCase& c, std::set<std::string>& used) {
  std::string text;
  for (const RuleKernel& k : kernels_of(c)) {
    auto choice =
        choose_trace(k.kernel, {.machine = &c.machine, .constants = k.constants, .answers = {}});
    EXPECT_TRUE(choice.ok()) << choice.error().to_string();
    if (!choice.ok()) return text;
    EXPECT_TRUE(choice->lost.empty()) << choice->lost[0];
    for (const Decision& d : choice->decisions) {
      if (!d.labels.empty()) used.insert(d.labels[static_cast<size_t>(d.answer)]);
      if (d.name.starts_with("kernel.")) used.insert(d.name.substr(7));
    }
    // Costs are those of a machine that was not measured, and read better without.
    for (Decision& d : choice->decisions) d.microseconds.clear();
    text +=
        "kernel " + k.kernel.name + "\n" + to_string(choice->decisions) + to_string(choice->trace);
  }
  return text;
}

TEST(ScheduleRules, WriteWhatTheirCasesSay) {
  const std::string path = TILEWRIGHT_SOURCE_DIR "/tests/passes/rule_cases.txt";
  std::vector<RuleCase> cases = read_rule_cases(path);
  ASSERT_FALSE(cases.empty());
  const bool update = std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr;
  std::set<std::string> used;
  for (RuleCase& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = schedule_text(c, used);
    if (update) c.schedules = text;
    EXPECT_EQ(text, c.schedules);
  }
  for (const Rule& r : rules())
    EXPECT_TRUE(used.count(std::string(r.name)))
        << "no case in which rule '" << r.name << "' applies";
  if (update) write_rule_cases(path, cases);
}

}  // namespace
}  // namespace tilewright::passes
