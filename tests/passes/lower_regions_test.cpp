// The bodies of control flow go through the passes of their model: which they do not get in full.
#include <gtest/gtest.h>

#include "passes/lower.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// The first pass alone.
Result<ir::Graph> with_lowered_regions(const ir::Graph& g, const LowerOptions& options) {
  EXPECT_EQ(graph_passes()[0].name, "lower_regions");
  return run_pipeline(graph_passes().subspan(0, 1), g, options);
}
// y = exp(x) or -x, and `results` of these nodes, which each branch has as well.
ir::Graph branches(const std::string& more, const std::string& extents = "[4]",
                   const std::string& results = "") {
  const std::string type = "f32" + extents;
  auto region = [&](const std::string& name, const std::string& op) {
    return "    graph " + name + " {\n      input v: " + type + "\n      w: " + type + " = " + op +
           "(v)\n      output w as \"w\"\n" + more + "    }\n";
  };
  return parsed_graph("  input c: bool[]\n  input x: " + type + "\n  y: " + type + results +
                      " = if(c, x) with [\n" + region("then", "exp") + region("otherwise", "neg") +
                      "  ]\n  output y as \"y\"\n");
}
size_t count_inside(const ir::Graph& g, std::string_view op) {
  size_t count = 0;
  for (const auto& region : g.nodes.at(0).regions)
    for (const ir::Node& n : region->nodes) count += n.op->name == op;
  return count;
}
int32_t group_of(const ir::Graph& g, std::string_view op) {
  for (const ir::Node& n : g.nodes)
    if (n.op->name == op) return n.group;
  ADD_FAILURE() << "no " << op;
  return -1;
}

TEST(LowerRegions, EachBranchIsLowered) {
  const ir::Graph before = branches("      unused: f32[4] = relu(v)\n");
  ASSERT_EQ(count_inside(before, "relu"), 2u);
  auto after = with_lowered_regions(before, {});
  ASSERT_TRUE(after.ok()) << after.error().to_string();
  EXPECT_EQ(count_inside(*after, "relu"), 0u) << ir::to_text(*after);
  EXPECT_EQ(count_inside(*after, "exp") + count_inside(*after, "neg"), 2u);
  // The graph around them is left to the passes after this one.
  EXPECT_EQ(after->nodes.at(0).group, before.nodes.at(0).group);
}

// Floats, by the interpreter.
Result<std::vector<ir::ConstantRef>> interpreted(const ir::Graph& g) {
  TW_ASSIGN(std::vector<Elements> results, run_graph(g));
  std::vector<ir::ConstantRef> constants;
  for (size_t i = 0; i < results.size(); ++i)
    constants.push_back(ir::make_constant_of<float>(
        DType::kFloat32, *ir::constant_shape(g.value(g.outputs[i]).type),
        std::vector<float>(results[i].begin(), results[i].end())));
  return constants;
}

// Bytes that constants may become: those of the model, divided among it and its two branches. Here
// each branch wants 400, and may have 4 for each of its own 12 beside its share.
TEST(LowerRegions, ShareTheBudgetOfFoldedBytes) {
  const ir::Graph before = branches(
      "      const a: f32[1] = [1.0]\n      const n: i64[1] = [100]\n"
      "      big: f32[100] = expand(a, n)\n      sum: f32[100] = add(big, v)\n"
      "      output sum as \"sum\"\n",
      "[1]", ", z: f32[100]");
  for (const int64_t enough : {0, 1}) {
    LowerOptions options;
    options.run_constants = interpreted;
    options.free_fold_bytes = 3 * (enough ? 352 : 351) + 2;
    auto after = with_lowered_regions(before, options);
    ASSERT_TRUE(after.ok()) << after.error().to_string();
    EXPECT_EQ(count_inside(*after, "expand"), enough ? 0u : 2u) << ir::to_text(*after);
    EXPECT_EQ(count_inside(*after, "add"), 2u);
  }
}

// A wrong constant is an error of the model, but in a branch only when the branch is taken.
TEST(LowerRegions, WrongConstantsInsideAreErrorsOfTheRun) {
  const std::string lines =
      "      const i: i64[1] = [4]\n      g: f32[1] = gather(v, i)\n      output g as \"g\"\n";
  auto after = with_lowered_regions(branches(lines, "[4]", ", z: f32[1]"), {});
  ASSERT_TRUE(after.ok()) << after.error().to_string();
  EXPECT_EQ(count_inside(*after, "checked_indices"), 2u) << ir::to_text(*after);
  const ir::Graph same = parsed_graph("  input v: f32[4]\n" + lines);
  auto alone = lower_graph(same, {});
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().to_string().find("index 4"), std::string::npos)
      << alone.error().to_string();
}

// Options that switch passes off hold inside as well.
TEST(LowerRegions, OptionsHoldInside) {
  LowerOptions unfused;
  unfused.fuse = false;
  const ir::Graph before = branches(
      "      r: f32[4] = relu(v)\n      t: f32[4] = tanh(r)\n"
      "      output t as \"t\"\n",
      "[4]", ", z: f32[4]");
  for (const bool fuse : {true, false}) {
    auto after = with_lowered_regions(before, fuse ? LowerOptions{} : unfused);
    ASSERT_TRUE(after.ok()) << after.error().to_string();
    for (const auto& region : after->nodes.at(0).regions)
      EXPECT_EQ(group_of(*region, "relu") == group_of(*region, "tanh"), fuse)
          << ir::to_text(*after);
  }
}

}  // namespace
}  // namespace tilewright::passes
