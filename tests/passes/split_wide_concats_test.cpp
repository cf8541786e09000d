// Concats of many operands in parts, with the same elements.
#include <gtest/gtest.h>

#include "ir/ops/known_ops.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// A concat of `count` inputs, each of some columns by its number: 1 to 4.
std::string concat_of(int count) {
  std::string inputs, operands;
  int total = 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = "x" + std::to_string(i);
    inputs += "  input " + name + ": f32[2, " + std::to_string(i % 4 + 1) + "]\n";
    operands += (i ? ", " : "") + name;
    total += i % 4 + 1;
  }
  return inputs + "  y: f32[2, " + std::to_string(total) + "] = concat(" + operands +
         ") {axis = 1}\n  output y as \"y\"\n";
}

TEST(SplitWideConcats, HaveFewOperandsAndTheSameElements) {
  for (int count : {1, 64, 65, 129, 64 * 64 + 1}) {
    SCOPED_TRACE(count);
    const ir::Graph before = parsed_graph(concat_of(count)), after = split_wide_concats(before);
    expect_same_graph_results(before, after);
    if (count <= 64) { EXPECT_EQ(after.nodes.size(), 1u); }
    for (const ir::Node& n : after.nodes) {
      EXPECT_EQ(n.op, ir::ops::concat());
      EXPECT_LE(n.inputs.size(), 64u);
    }
  }
}

TEST(SplitWideConcats, InterleavedOnesStay) {
  std::string inputs, operands;
  for (int i = 0; i < 70; ++i) {
    inputs += "  input x" + std::to_string(i) + ": f32[2]\n";
    operands += (i ? ", x" : "x") + std::to_string(i);
  }
  const ir::Graph graph = parsed_graph(inputs + "  y: f32[140] = concat(" + operands +
                                       ") {axis = 0, interleave = 1}\n  output y as \"y\"\n");
  EXPECT_EQ(split_wide_concats(graph).nodes.size(), 1u);
}

}  // namespace
}  // namespace tilewright::passes
