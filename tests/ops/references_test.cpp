// Every operator against results that were not made by Tilewright: interpreted and compiled, at both
// levels of numerics that compute in the operators' own types.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/graph/op.h"
#include "tests/ops/graph_oracle.h"
#include "tests/ops/reference_cases.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(TILEWRIGHT_SOURCE_DIR "/tests/ops/references"))
    if (e.path().extension() == ".txt") names.push_back(e.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
Result<std::vector<ReferenceCase>> cases_of(const std::string& family) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/tests/ops/references/" + family + ".txt");
  std::stringstream text;
  text << file.rdbuf();
  return parse_reference_cases(text.str());
}

void expect_results(const ReferenceCase& c, const Tensors& got) {
  ASSERT_EQ(got.size(), c.expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(mismatch(got[i], c.expected[i]), "") << "output " << c.graph.output_names[i];
}

class References : public testing::TestWithParam<std::string> {};

TEST_P(References, Interpreted) {
  const auto cases = cases_of(GetParam());
  ASSERT_TRUE(cases.ok()) << cases.error().to_string();
  EXPECT_FALSE(cases->empty());
  for (const ReferenceCase& c : *cases) {
    SCOPED_TRACE(c.name);
    const auto run = interpret_graph(c.graph, c.operands);
    EXPECT_TRUE(run.ok()) << run.error().to_string();
    if (run.ok()) expect_results(c, run->outputs);
  }
}

void run_compiled_cases(const std::string& family, Numerics numerics) {
  const auto cases = cases_of(family);
  ASSERT_TRUE(cases.ok()) << cases.error().to_string();
  for (const ReferenceCase& c : *cases) {
    SCOPED_TRACE(c.name);
    CompiledForm form{true, true, true};
    form.numerics = numerics;
    const auto runs = run_compiled(c.graph, c.operands, form, {1});
    EXPECT_TRUE(runs.ok()) << runs.error().to_string();
    if (runs.ok()) expect_results(c, (*runs)[0]);
  }
}
TEST_P(References, CompiledAtStandard) { run_compiled_cases(GetParam(), Numerics::kStandard); }
TEST_P(References, CompiledAtExact) { run_compiled_cases(GetParam(), Numerics::kExact); }

INSTANTIATE_TEST_SUITE_P(All, References, testing::ValuesIn(families()),
                         [](const auto& info) { return info.param; });

// Operators without a meaning in numbers of their own.
const std::pair<std::string_view, const char*> kWithoutCases[] = {
    {"run_key", "its words are the session's seed and the number of the run"},
    {"if", "control flow: runs one of its regions"},
    {"loop", "control flow: runs its region again and again"},
    {"fail", "has no result: ends the run"},
    {"checked_indices", "hands its operand on, or ends the run"},
};

TEST(ReferenceCases, EveryOperatorHasOne) {
  std::set<std::string_view> covered, excused;
  for (const std::string& family : families()) {
    const auto cases = cases_of(family);
    ASSERT_TRUE(cases.ok()) << family << ": " << cases.error().to_string();
    for (const ReferenceCase& c : *cases)
      for (const ir::Node& n : c.graph.nodes) covered.insert(n.op->name);
  }
  for (const auto& [op, reason] : kWithoutCases) {
    const ir::OpDef* found = ir::find_op(op);
    ASSERT_NE(found, nullptr) << op << " is gone";
    EXPECT_EQ(found->compute, nullptr) << op << " computes, and is excused: " << reason;
    EXPECT_EQ(covered.count(op), 0u) << op << " has a case, and is excused: " << reason;
    excused.insert(op);
  }
  for (const ir::OpDef* op : ir::all_ops())
    EXPECT_TRUE(covered.count(op->name) || excused.count(op->name)) << op->name << ": no case";
}

TEST(ReferenceCases, WhatDoesNotFitIsRefused) {
  const std::string graph =
      "case a\ngraph a {\n  input x: f32[2]\n  y: f32[2] = neg(x)\n  output y as \"y\"\n}\n";
  const std::string given = "given x f32 2\n  1 2\n", expected = "expect y f32 2 exact\n  -1 -2\n";
  const auto read = [](const std::string& text) {
    const auto cases = parse_reference_cases(text);
    return cases.ok() ? std::string("read") : cases.error().to_string();
  };
  EXPECT_EQ(read(graph + given + expected), "read");
  const std::pair<std::string, const char*> wrong[] = {
      {graph + given + expected + "note\n", "expected 'case NAME'"},
      {graph + expected, "expected 'given x'"},
      {graph + given, "expected 'expect y'"},
      {graph + "given x f32 2\n  1\n" + expected, "found 1 elements"},
      {graph + "given x f32 2\n  1 2 3\n" + expected, "found 3 elements"},
      {graph + "given x f32 2\n  1 2x\n" + expected, "'2x' is no f32"},
      {graph + "given x f32 2 exact\n  1 2\n" + expected, "unknown word 'exact'"},
      {graph + "given x u8 2\n  1 256\n" + expected, "'256' is no u8"},
      {graph + given + "expect y f32 2\n  1 2\n", "expected 'exact'"},
      {graph + given + "expect y f32 2 roughly\n  1 2\n", "unknown word 'roughly'"},
      {graph + given + "expect y f32 2 terms 3 of x\n  1 2\n", "terms N of M"},
      {graph + given + "expect y f33 2 exact\n  1 2\n", "'f33' is no element type"},
  };
  for (const auto& [text, phrase] : wrong)
    EXPECT_NE(read(text).find(phrase), std::string::npos) << read(text) << "\n" << phrase;
}

TEST(ReferenceCases, MismatchesAreSeen) {
  const auto f32 = [](std::vector<double> v) {
    return repeated(DType::kFloat32, {static_cast<int64_t>(v.size())}, v);
  };
  ExpectedResult want{f32({1, 0, NAN, INFINITY}), false, 0, 0};
  EXPECT_EQ(mismatch(f32({1 + 0x1p-22, -0.0, NAN, INFINITY}), want), "");
  for (const auto& got : {f32({1 + 0x1p-20, 0, NAN, INFINITY}), f32({1, 0, 0, INFINITY}),
                          f32({1, 0, NAN, -INFINITY}), f32({1, 1e-30, NAN, INFINITY}), f32({1, 0})})
    EXPECT_NE(mismatch(got, want), "");
  want.terms = 8, want.magnitude = 1;
  EXPECT_EQ(mismatch(f32({1 + 0x1p-20, 0x1p-20, NAN, INFINITY}), want), "");
  want.exact = true;
  EXPECT_NE(mismatch(f32({1, -0.0, NAN, INFINITY}), want), "");
}

}  // namespace
}  // namespace tilewright
