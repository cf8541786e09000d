// Transposes of matrices become flags of the products around them.
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

void expect_nodes(const std::string& lines, const std::string& nodes,
                  ir::Graph (*fold)(ir::Graph) = fold_transposes) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines), after = fold(before);
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
  expect_left(
      with("  p: f32[4, 5] = matmul(a, b) {trans_b = 1}\n"
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
  expect_left(
      with("  t: f32[5, 3] = transpose(b) {perm = [0, 1]}\n"
           "  y: f32[4, 5] = matmul(a, t) {trans_b = 1}\n"));
  expect_left(R"(  input a: u8[4, 3]
  input b: u8[5, 3]
  input z: u8[5]
  t: u8[3, 5] = transpose(b) {perm = [1, 0]}
  y: i32[4, 5] = matmul(a, t, _, z) {out_dtype = "i32"}
  output y as "y"
)");
}

// What is left to do is an order of matrices and rows, or nothing.
TEST(FoldTransposes, OfSeveralMatrices) {
  const auto fold = [](const std::string& lines, const std::string& nodes) {
    expect_nodes(lines, nodes, fold_batch_transposes);
  };
  const std::string heads = R"(  input q: f32[2, 4, 3, 5]
  input k: f32[2, 6, 3, 5]
)";
  fold(heads + R"(  a: f32[2, 3, 4, 5] = transpose(q) {perm = [0, 2, 1, 3]}
  b: f32[2, 3, 5, 6] = transpose(k) {perm = [0, 2, 3, 1]}
  y: f32[2, 3, 4, 6] = matmul(a, b)
  output y as "y"
)",
       R"(  a: f32[2, 3, 4, 5] = transpose(q) {perm = [0, 2, 1, 3]}
  y: f32[2, 3, 6, 5] = transpose(k) {perm = [0, 2, 1, 3]}
  y_1: f32[2, 3, 4, 6] = matmul(a, y) {trans_b = 1}
)");
  fold(R"(  input a: f32[2, 5, 3]
  input b: f32[2, 5, 4]
  p: f32[2, 3, 4] = matmul(a, b) {trans_a = 1}
  y: f32[2, 4, 3] = transpose(p) {perm = [0, 2, 1]}
  output y as "y"
)",
       "  y: f32[2, 4, 3] = matmul(b, a) {trans_a = 1, trans_b = 0}\n");
  fold(heads + R"(  a: f32[2, 3, 4, 5] = transpose(q) {perm = [0, 2, 1, 3]}
  b: f32[2, 3, 6, 5] = transpose(k) {perm = [0, 2, 1, 3]}
  p: f32[2, 3, 4, 6] = matmul(a, b) {trans_b = 1}
  y: f32[2, 6, 3, 4] = transpose(p) {perm = [0, 3, 1, 2]}
  output y as "y"
)",
       R"(  a: f32[2, 3, 4, 5] = transpose(q) {perm = [0, 2, 1, 3]}
  b: f32[2, 3, 6, 5] = transpose(k) {perm = [0, 2, 1, 3]}
  y: f32[2, 3, 6, 4] = matmul(b, a) {trans_a = 0, trans_b = 1}
  y_1: f32[2, 6, 3, 4] = transpose(y) {perm = [0, 2, 1, 3]}
)");
  // One matrix for the rows of several, which are one product's, and rows that stay whole.
  for (const std::string& left : {R"(  input a: f32[2, 5, 4]
  input b: f32[5, 3]
  t: f32[2, 4, 5] = transpose(a) {perm = [0, 2, 1]}
  y: f32[2, 4, 3] = matmul(t, b)
  output y as "y"
)",
                                  R"(  input a: f32[4, 2, 5]
  input b: f32[2, 5, 3]
  t: f32[2, 4, 5] = transpose(a) {perm = [1, 0, 2]}
  y: f32[2, 4, 3] = matmul(t, b)
  output y as "y"
)"})
    fold(left, nodes_of(parsed_graph(left)));
}

}  // namespace
}  // namespace tilewright::passes
