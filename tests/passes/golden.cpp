#include "tests/passes/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "tests/passes/kernel_run.h"

namespace tilewright::passes {

namespace {

// The parts of one case as they stand in the file.
struct Case {
  std::string name, kernel, steps, result;
};

std::vector<Case> read_cases(std::istream& in) {
  std::vector<Case> cases;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("=== ", 0) == 0) {
      cases.push_back({line.substr(4), "", "", ""});
      part = &cases.back().kernel;
    } else if (line == "--- steps" && part) {
      part = &cases.back().steps;
    } else if (line == "--- result" && part) {
      part = &cases.back().result;
    } else if (part) {
      *part += line + "\n";
    }
  }
  return cases;
}
void write_cases(const std::string& path, const std::vector<Case>& cases) {
  std::ofstream out(path);
  for (const Case& c : cases) {
    out << "=== " << c.name << "\n" << c.kernel;
    if (!c.steps.empty()) out << "--- steps\n" << c.steps;
    out << "--- result\n" << c.result;
  }
}

constexpr std::string_view kError = "error: ";

// Kernels are verified before and after, and compared by text and by results in the interpreter: a
// golden file alone would keep a mistake that was once accepted.
void check_case(Case& c, const GoldenRules& rules, const ApplySteps& apply, bool update) {
  auto before = ir::parse_kernel(c.kernel);
  ASSERT_TRUE(before.ok()) << before.error().to_string();
  if (update) {
    c.kernel = ir::to_text(*before);
    before = ir::parse_kernel(c.kernel);
    ASSERT_TRUE(before.ok()) << before.error().to_string();
  }
  auto verified = ir::verify(*before, rules.before);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string();
  auto after = apply(*before, c.steps);
  if (c.result.rfind(kError, 0) == 0) {
    ASSERT_FALSE(after.ok()) << "no error, but\n" << ir::to_text(*after);
    const std::string phrase = c.result.substr(kError.size(), c.result.find('\n') - kError.size());
    EXPECT_NE(after.error().message.find(phrase), std::string::npos) << after.error().to_string();
    return;
  }
  ASSERT_TRUE(after.ok()) << after.error().to_string();
  const std::string text = ir::to_text(*after);
  verified = ir::verify(*after, rules.after);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << text;
  expect_same_results(*before, *after);
  if (update) c.result = text;
  EXPECT_EQ(text, c.result);
}

}  // namespace

void check_golden(const std::string& name, const GoldenRules& rules, const ApplySteps& apply) {
  const std::string path = TILEWRIGHT_SOURCE_DIR "/tests/passes/" + name + ".ir";
  std::ifstream in(path);
  ASSERT_TRUE(in) << "no file " << path;
  std::vector<Case> cases = read_cases(in);
  const bool update = std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr;
  size_t errors = 0;
  for (Case& c : cases) {
    SCOPED_TRACE(name + ": " + c.name);
    check_case(c, rules, apply, update);
    errors += c.result.rfind(kError, 0) == 0;
  }
  EXPECT_LT(errors, cases.size()) << "a case that works is missing";
  if (rules.needs_error) { EXPECT_GT(errors, 0u) << "an illegal use is missing"; }
  if (update) write_cases(path, cases);
}

}  // namespace tilewright::passes
