// In which forms attention is found, and that it computes the same.
#include <gtest/gtest.h>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

const ir::Node* attention_of(const ir::Graph& g) {
  for (const ir::Node& n : g.nodes)
    if (n.op->name == "attention") return &n;
  return nullptr;
}
// One node `attention` takes the place of all: with these operands, and views of them.
void expect_fused(const std::string& lines, const std::vector<std::string>& operands,
                  double scale = 1, size_t nodes = 1) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines), after = fuse_attention(before);
  expect_same_graph_results(before, after);
  const ir::Node* n = attention_of(after);
  ASSERT_TRUE(n) << ir::to_text(after);
  EXPECT_EQ(after.nodes.size(), nodes) << ir::to_text(after);
  EXPECT_EQ(std::get<double>(n->attributes.at("scale")), scale);
  for (size_t i = 0; i < operands.size(); ++i)
    EXPECT_EQ(n->inputs[i] == ir::kNone ? "" : after.value(n->inputs[i]).name, operands[i]) << i;
}
void expect_left(const std::string& lines) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines);
  EXPECT_FALSE(attention_of(fuse_attention(before))) << ir::to_text(before);
}

const std::string kOperands = R"(  input q: f32[2, 5, 4]
  input k: f32[2, 4, 7]
  input v: f32[2, 7, 3]
)";
const std::string kProduct = "  s: f32[2, 5, 7] = matmul(q, k)\n";
std::string softmax_of(const std::string& scores) {
  return "  p: f32[2, 5, 7] = softmax(" + scores + ") {axis = -1}\n";
}
const std::string kValues = "  y: f32[2, 5, 3] = matmul(p, v)\n  output y as \"y\"\n";

TEST(FuseAttention, PlainAndScaled) {
  expect_fused(kOperands + kProduct + softmax_of("s") + kValues, {"q", "k", "v"});
  const std::string factor = "  const f: f32[] = [0.5]\n";
  for (const std::string op : {"mul", "div"})
    expect_fused(kOperands + factor + kProduct + "  t: f32[2, 5, 7] = " + op + "(s, f)\n" +
                     softmax_of("t") + kValues,
                 {"q", "k", "v"}, op == "mul" ? 0.5 : 2);
}

TEST(FuseAttention, BiasesAndAChoice) {
  const std::string bias = "  input b: f32[1, 1, 7]\n", second = "  input c: f32[5, 7]\n",
                    choice = "  input m: bool[1, 5, 7]\n  const low: f32[] = [-100.0]\n";
  expect_fused(
      kOperands + bias + kProduct + "  t: f32[2, 5, 7] = add(s, b)\n" + softmax_of("t") + kValues,
      {"q", "k", "v", "", "b"});
  expect_fused(
      kOperands + bias + kProduct + "  t: f32[2, 5, 7] = add(b, s)\n" + softmax_of("t") + kValues,
      {"q", "k", "v", "", "b"});
  expect_fused(kOperands + choice + kProduct + "  t: f32[2, 5, 7] = where(m, s, low)\n" +
                   softmax_of("t") + kValues,
               {"q", "k", "v", "m", ""});
  expect_fused(kOperands + choice + kProduct + "  t: f32[2, 5, 7] = where(m, low, s)\n" +
                   softmax_of("t") + kValues,
               {"q", "k", "v"}, 1, 2);
  expect_fused(kOperands + bias + second + choice + kProduct +
                   "  t: f32[2, 5, 7] = where(m, s, low)\n  u: f32[2, 5, 7] = add(t, b)\n"
                   "  w: f32[2, 5, 7] = add(c, u)\n" +
                   softmax_of("w") + kValues,
               {"q", "k", "v", "m"}, 1, 2);
}

TEST(FuseAttention, KeysThatLieTheOtherWayRound) {
  expect_fused(R"(  input q: f32[2, 8, 4]
  input k: f32[2, 7, 4]
  input v: f32[2, 7, 3]
  s: f32[2, 8, 7] = matmul(q, k) {trans_b = 1}
  p: f32[2, 8, 7] = softmax(s) {axis = -1}
  y: f32[2, 8, 3] = matmul(p, v)
  output y as "y"
)",
               {"q"}, 1, 2);
  // A few rows run along the keys.
  expect_left(R"(  input q: f32[2, 5, 4]
  input k: f32[2, 7, 4]
  input v: f32[2, 7, 3]
  s: f32[2, 5, 7] = matmul(q, k) {trans_b = 1}
)" + softmax_of("s") +
              kValues);
}

TEST(FuseAttention, RowsOfNaNThatBecomeZero) {
  expect_fused(kOperands + "  const zero: f32[] = [0.0]\n" + kProduct + softmax_of("s") +
                   "  n: bool[2, 5, 7] = is_nan(p)\n  r: f32[2, 5, 7] = where(n, zero, p)\n"
                   "  y: f32[2, 5, 3] = matmul(r, v)\n  output y as \"y\"\n",
               {"q", "k", "v"});
}

TEST(FuseAttention, LeavesWhatIsSomethingElse) {
  // Another axis; weights that are used again; batches that broadcast; a factor that is no
  // constant.
  expect_left(kOperands + kProduct + "  p: f32[2, 5, 7] = softmax(s) {axis = 1}\n" + kValues);
  expect_left(kOperands + kProduct + softmax_of("s") + kValues + "  output p as \"p\"\n");
  expect_left(kOperands + kProduct + softmax_of("s") + kValues + "  output s as \"s\"\n");
  expect_left(R"(  input q: f32[2, 5, 4]
  input k: f32[1, 4, 7]
  input v: f32[2, 7, 3]
)" + kProduct +
              softmax_of("s") + kValues);
  // Values of one batch for all, or of more batches than there are weights.
  expect_left(R"(  input q: f32[2, 5, 4]
  input k: f32[2, 4, 7]
  input v: f32[1, 7, 3]
)" + kProduct +
              softmax_of("s") + kValues);
  expect_left(R"(  input q: f32[1, 5, 4]
  input k: f32[1, 4, 7]
  input v: f32[2, 7, 3]
  s: f32[1, 5, 7] = matmul(q, k)
  p: f32[1, 5, 7] = softmax(s) {axis = -1}
)" + kValues);
  expect_left(kOperands + "  input f: f32[1, 1, 7]\n" + kProduct +
              "  t: f32[2, 5, 7] = mul(s, f)\n" + softmax_of("t") + kValues);
}

}  // namespace
}  // namespace tilewright::passes
