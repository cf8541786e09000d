// Operators are known by their records and traits: outside of ir/ops and the importers no source
// spells the name of one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "ir/ops/known_ops.h"

namespace tilewright {
namespace {

std::set<std::string> operator_names() {
  std::set<std::string> names;
  for (const ir::OpDef* op : ir::all_ops()) names.emplace(op->name);
  // Words that attributes have, too, may stand for those.
  for (const ir::OpDef* op : ir::all_ops())
    for (const ir::AttributeDef& a : op->attributes) names.erase(std::string(a.name));
  return names;
}

// Lines of a source that quote an operator, or compare the name of a node's operator with anything.
std::vector<std::string> findings(const std::string& source, const std::set<std::string>& names) {
  static const std::regex comment("//.*"), quoted("\"([a-z_0-9]+)\""),
      compared("op->name *(==|!=)|(==|!=) *[a-z_.>()-]*op->name");
  std::vector<std::string> found;
  std::istringstream in(source);
  for (std::string line; std::getline(in, line);) {
    const std::string code = std::regex_replace(line, comment, "");
    bool bad = std::regex_search(code, compared);
    for (std::sregex_iterator at(code.begin(), code.end(), quoted), end; at != end; ++at)
      bad |= names.count((*at)[1]) != 0;
    if (bad) found.push_back(line);
  }
  return found;
}

TEST(OperatorNames, AreNotQuotedByPasses) {
  const std::set<std::string> names = operator_names();
  int files = 0;
  for (const char* folder : {"passes", "codegen", "autotune", "runtime", "ir/graph",
                             "ir/interpreter", "ir/program", "frontends/compiler", "frontends/cli"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / folder)) {
      const std::string ending = entry.path().extension();
      if (ending != ".cpp" && ending != ".h" && ending != ".def") continue;
      ++files;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const std::string& line : findings(text.str(), names))
        ADD_FAILURE() << entry.path() << ": " << line
                      << "\na trait of OpDef, or ops:: of ir/ops/known_ops.h, says the same";
    }
  EXPECT_GT(files, 100);
}

TEST(OperatorNames, AreFoundWhereTheyAreQuoted) {
  const std::set<std::string> names = operator_names();
  EXPECT_EQ(findings("if (n.op->name == \"conv\") {\n", names).size(), 1u);
  EXPECT_EQ(findings("if (n.op->name == kShape) {\n", names).size(), 1u);
  EXPECT_EQ(findings("  static const std::set<std::string> costly{\"exp\"};\n", names).size(), 1u);
  EXPECT_EQ(findings("  find_op(\"winograd_conv\");\n\n  op(\"mul\", {a, b});\n", names).size(),
            2u);
  EXPECT_EQ(findings("// as the operator \"conv\" does\n", names).size(), 0u);
  EXPECT_EQ(findings("  n.attr_ints(\"axes\"); n.op == ops::conv();\n", names).size(), 0u);
}

TEST(OperatorNames, EachKnownOperatorIsARecord) {
#define OP_AS(function, op_name)                 \
  ASSERT_NE(ir::ops::function(), nullptr);       \
  EXPECT_EQ(ir::ops::function()->name, op_name); \
  EXPECT_EQ(ir::ops::function(), ir::find_op(op_name));
#define OP(name) OP_AS(name, #name)
#include "ir/ops/known_ops.def"
#undef OP
#undef OP_AS
}

}  // namespace
}  // namespace tilewright
