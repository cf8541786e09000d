// Transposes of matrices become flags of the products around them.
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_nodes(const std::string& lines, const std::string& nodes) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines), after = fold_transposes(before);
  EXPECT_EQ(nodes_of(after), nodes);
  expect_same_graph_results(before, after);
}
void expect_left(const std::string& lines) { expect_nodes(lines, nodes_of(parsed_graph(lines))); }

// y of a: f32[4, 3], b: f32[5, 3], by the nodes.
std::string with(const std::string& nodes) {
  return "  input a: f32[4, 3]\n  input b: f32[5, 3]\n" + nodes + "  output y as \"y\"\n";
}

TEST(FoldTransposes, OfOperands) {
  expect_nodes(with("  t: f32[3, 5] = transpose(b) {perm = [1, 0]}\n"
                    "  y: f32[4, 5] = matmul(a, t)\n"),
               "  y: f32[4, 5] = matmul(a, b) {trans_b = 1}\n");
  expect_nodes(with("  s: f32[3, 4] = transpose(a) {perm = [1, 0]}\n"
                    "  t: f32[3, 5] = transpose(b) {perm = [1, 0]}\n"
                    "  y: f32[4, 5] = matmul(s, t) {trans_a = 1, trans_b = 0}\n"),
               "  y: f32[4, 5] = matmul(a, b) {trans_a = 0, trans_b = 1}\n");
  // The transpose stays for others.
  const std::string read = with(
      "  t: f32[3, 5] = transpose(b) {perm = [1, 0]}\n"
      "  y: f32[4, 5] = matmul(a, t)\n  output t as \"t\"\n");
  expect_nodes(read,
               "  t: f32[3, 5] = transpose(b) {perm = [1, 0]}\n"
               "  y: f32[4, 5] = matmul(a, b) {trans_b = 1}\n");
}
TEST(FoldTransposes, OfOneMatrixForSeveral) {
  expect_nodes(R"(  input a: f32[2, 4, 3]
  input b: f32[5, 3]
  t: f32[3, 5] = transpose(b) {perm = [1, 0]}
  y: f32[2, 4, 5] = matmul(a, t)
  output y as "y"
)",
               "  y: f32[2, 4, 5] = matmul(a, b) {trans_b = 1}\n");
}
TEST(FoldTransposes, OfResults) {
  for (const auto& [ta, tb] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    const auto flags = [](int a, int b) {
      return "{trans_a = " + std::to_string(a) + ", trans_b = " + std::to_string(b) + "}\n";
    };
    expect_nodes(std::string("  input a: f32") + (ta ? "[3, 4]" : "[4, 3]") + "\n  input b: f32" +
                     (tb ? "[5, 3]" : "[3, 5]") + "\n  p: f32[4, 5] = matmul(a, b) " +
                     flags(ta, tb) +
                     "  y: f32[5, 4] = transpose(p) {perm = [1, 0]}\n  output y as \"y\"\n",
                 "  y: f32[5, 4] = matmul(b, a) " + flags(!tb, !ta));
  }
  expect_left(with("  p: f32[4, 5] = matmul(a, b) {trans_b = 1}\n"
                   "  y: f32[5, 4] = transpose(p) {perm = [1, 0]}\n  output p as \"p\"\n"));
}
// Products of several matrices, other orders, and zero points, which lie as their operand does.
TEST(FoldTransposes, OthersStay) {
  expect_left(R"(  input a: f32[2, 4, 3]
  input b: f32[2, 5, 3]
  t: f32[2, 3, 5] = transpose(b) {perm = [0, 2, 1]}
  p: f32[2, 4, 5] = matmul(a, t)
  y: f32[2, 5, 4] = transpose(p) {perm = [0, 2, 1]}
  output y as "y"
)");
  expect_left(with("  t: f32[5, 3] = transpose(b) {perm = [0, 1]}\n"
                   "  y: f32[4, 5] = matmul(a, t) {trans_b = 1}\n"));
  expect_left(R"(  input a: u8[4, 3]
  input b: u8[5, 3]
  input z: u8[5]
  t: u8[3, 5] = transpose(b) {perm = [1, 0]}
  y: i32[4, 5] = matmul(a, t, _, z) {out_dtype = "i32"}
  output y as "y"
)");
}

}  // namespace
}  // namespace tilewright::passes
