// Sums of the gradients of slices become concats where these cover a tensor, each part once.
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// The gradient of a slice of columns [start, end), by `step`, of f32[4, 6].
std::string adjoint(const std::string& name, const std::string& part, int start, int end,
                    int step = 1, int axis = 1) {
  const auto number = [&](const char* what, int n) {
    return "  const " + name + what + ": i64[1] = [" + std::to_string(n) + "]\n";
  };
  return number("b", start) + number("e", end) + number("d", axis) + number("s", step) + "  " +
         name + ": f32[4, 6] = transposed(" + part + ", " + name + "b, " + name + "e, " + name +
         "d, " + name +
         "s) {transposed_extents = extents[4, 6], transposed_op = \"slice\", transposed_operand = "
         "0}\n";
}
std::string inputs(const std::vector<std::string>& types) {
  std::string lines;
  for (size_t k = 0; k < types.size(); ++k)
    lines += "  input " + std::string(1, static_cast<char>('p' + k)) + ": " + types[k] + "\n";
  return lines;
}
const std::string kOutput = "  output y as \"y\"\n";
std::string sum(const std::string& name, const std::string& a, const std::string& b) {
  return "  " + name + ": f32[4, 6] = add(" + a + ", " + b + ")\n";
}

void expect_nodes(const std::string& lines, const std::string& nodes) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines), after = join_slices(before);
  EXPECT_EQ(nodes_of(after), nodes);
  expect_same_graph_results(before, after);
}
void expect_left(const std::string& lines) { expect_nodes(lines, nodes_of(parsed_graph(lines))); }

TEST(JoinSlices, PartsOfASplitInAnyOrder) {
  const std::string lines = inputs({"f32[4, 1]", "f32[4, 2]", "f32[4, 3]"}) +
                            adjoint("a", "r", 3, 6) + adjoint("b", "p", 0, 1) +
                            adjoint("c", "q", -5, 3);
  const std::string joined = "  y: f32[4, 6] = concat(p, q, r) {axis = 1}\n";
  expect_nodes(lines + sum("part", "a", "b") + sum("y", "part", "c") + kOutput, joined);
  expect_nodes(lines + sum("part", "a", "b") + sum("y", "c", "part") + kOutput, joined);
}
TEST(JoinSlices, OnePartAtTwoPlaces) {
  expect_nodes(inputs({"f32[2, 6]"}) + adjoint("a", "p", 0, 2, 1, 0) +
                   adjoint("b", "p", 2, 9, 1, 0) + sum("y", "a", "b") + kOutput,
               "  y: f32[4, 6] = concat(p, p) {axis = 0}\n");
}
// Something else is added, zeros remain, parts overlap, they lie along two axes, or apart.
TEST(JoinSlices, OthersStay) {
  const std::string three = inputs({"f32[4, 3]", "f32[4, 3]"});
  const std::string both = three + adjoint("a", "p", 0, 3) + adjoint("b", "q", 3, 6);
  expect_left(both + "  input z: f32[4, 6]\n" + sum("part", "a", "z") + sum("y", "part", "b") +
              kOutput);
  expect_left(three + adjoint("a", "p", 0, 3) + adjoint("b", "q", 2, 5) + sum("y", "a", "b") +
              kOutput);
  expect_left(three + adjoint("a", "p", 0, 3) + adjoint("b", "q", 0, 3) + sum("y", "a", "b") +
              kOutput);
  expect_left(three + adjoint("a", "p", 0, 6, 2) + adjoint("b", "q", 3, 6) + sum("y", "a", "b") +
              kOutput);
  expect_left(three + adjoint("a", "p", 2, -7, -1) + adjoint("b", "q", 3, 6) + sum("y", "a", "b") +
              kOutput);
  expect_left(inputs({"f32[4, 3]", "f32[2, 6]"}) + adjoint("a", "p", 0, 3) +
              adjoint("b", "q", 2, 4, 1, 0) + sum("y", "a", "b") + kOutput);
}
// What else reads one of them needs its zeros.
TEST(JoinSlices, GradientsThatOthersReadStay) {
  const std::string lines = inputs({"f32[4, 3]", "f32[4, 3]"}) + adjoint("a", "p", 0, 3) +
                            adjoint("b", "q", 3, 6) + sum("y", "a", "b") + kOutput;
  expect_left(lines + "  output a as \"a\"\n");
  expect_left(lines + "  z: f32[4, 6] = exp(b)\n  output z as \"z\"\n");
}
TEST(JoinSlices, OtherAdjointsStay) {
  const std::string attributes =
      "{axis = 1, transposed_extents = extents[4, 6], transposed_op = \"gather\", "
      "transposed_operand = 0}\n";
  expect_left(inputs({"f32[4, 3]", "f32[4, 3]"}) +
              "  const i: i64[3] = [0, 1, 2]\n  const j: i64[3] = [3, 4, 5]\n"
              "  a: f32[4, 6] = transposed(p, i) " +
              attributes + "  b: f32[4, 6] = transposed(q, j) " + attributes + sum("y", "a", "b") +
              kOutput);
}

}  // namespace
}  // namespace tilewright::passes
