// What is computed of a flat concat of gradients is computed of each that a product gives, and of the rest together.
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// g: of a product, f32[64, 64], between what no product gives; p: f32[4160].
std::string gradients(const std::string& bias = "b", int bias_elements = 32) {
  return "  input x: f32[5, 64]\n  input y: f32[5, 64]\n  input b: f32[" +
         std::to_string(bias_elements) + "]\n  input c: f32[32]\n  input p: f32[" +
         std::to_string(4096 + 32 + bias_elements) +
         "]\n  input lr: f32[]\n  const n: i64[1] = [4096]\n"
         "  g: f32[64, 64] = matmul(x, y) {trans_a = 1}\n  flat: f32[4096] = reshape(g, n)\n"
         "  all: f32[" +
         std::to_string(4096 + 32 + bias_elements) + "] = concat(" + bias +
         ", flat, c) {axis = 0}\n";
}
std::string of_all(const std::string& name, const std::string& op) {
  return "  " + name + ": f32[4160] = " + op + "\n";
}
int count(const ir::Graph& g, const std::string& op) {
  int n = 0;
  for (const ir::Node& node : g.nodes) n += node.op->name == op;
  return n;
}
// How many of an operator there are afterwards.
void expect_count(const std::string& lines, const std::string& op, int n) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines), after = update_by_pieces(before);
  EXPECT_EQ(count(after, op), n) << nodes_of(after);
  expect_same_graph_results(before, after);
}
const std::string kUpdate = of_all("s", "mul(all, lr)") + of_all("q", "sub(p, s)"),
                  kOutput = "  output q as \"q\"\n";

TEST(UpdateByPieces, OfTheProductAndOfTheRest) {
  expect_count(gradients() + kUpdate + kOutput, "sub", 3);
  const ir::Graph after = update_by_pieces(parsed_graph(gradients() + kUpdate + kOutput));
  EXPECT_NE(nodes_of(after).find("f32[64, 64] = sub("), std::string::npos) << nodes_of(after);
}
// Several results, and what is made of the other operand alone.
TEST(UpdateByPieces, Momentum) {
  expect_count(gradients() + "  input m: f32[4160]\n  const mu: f32[] = [0.9]\n" +
                   of_all("old", "mul(m, mu)") + of_all("new", "add(old, all)") +
                   of_all("s", "mul(new, lr)") + of_all("q", "sub(p, s)") + kOutput +
                   "  output new as \"new\"\n",
               "mul", 6);
}
// Something needs all of them; the gradients are a result; nothing is large, or begins where memory may not.
TEST(UpdateByPieces, OthersStay) {
  const std::string norm =
      "  a: f32[4160] = mul(all, all)\n  t: f32[1] = reduce_sum(a) {axes = [0], keepdims = 1}\n";
  expect_count(gradients() + norm + of_all("s", "mul(all, t)") + of_all("q", "sub(p, s)") + kOutput,
               "sub", 1);
  expect_count(gradients() + kUpdate + kOutput + "  output all as \"g\"\n", "sub", 1);
  expect_count(gradients() + kUpdate + kOutput + "  output g as \"g\"\n", "sub", 1);
  const std::string odd = "  s: f32[4145] = mul(all, lr)\n  q: f32[4145] = sub(p, s)\n";
  expect_count(gradients("b", 17) + odd + kOutput, "sub", 1);
}

}  // namespace
}  // namespace tilewright::passes
