// The passes over graphs on small graphs: what is left, and that it computes the same.
#include "passes/graph/graph_passes.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/verify_graph.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// Constants by the interpreter.
Result<std::vector<ir::ConstantRef>> interpret_constants(const ir::Graph& g) {
  TW_ASSIGN(std::vector<Elements> results, run_graph(g));
  std::vector<ir::ConstantRef> constants;
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::TensorType& type = g.value(g.outputs[i]).type;
    TW_CHECK(type.dtype == DType::kFloat32);
    constants.push_back(
        ir::make_constant_of<float>(type.dtype, *ir::constant_shape(type),
                                    std::vector<float>(results[i].begin(), results[i].end())));
  }
  return constants;
}

// Dead code elimination, with identities taken out on the way.
TEST(EliminateDeadNodes, DropsWhatNobodyUsesAndCopies) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[4, 6]
  const n: i64[2] = [4, 6]
  a: f32[4, 6] = relu(x)
  unused: f32[4, 6] = exp(a)
  unused_too: f32[4, 6] = neg(unused)
  b: f32[4, 6] = identity(a)
  c: f32[4, 6] = reshape(b, n)
  d: f32[4, 6] = cast(c) {to = "f32"}
  y: f32[4, 6] = neg(d)
  output y as "y"
)");
  expect_graph(g, eliminate_dead_nodes(g), R"(  input x: f32[4, 6]
  a: f32[4, 6] = relu(x)
  y: f32[4, 6] = neg(a)
  output y as "y"
)");
}

// A reshape to another shape stays; an output may be an input of the graph itself.
TEST(EliminateDeadNodes, KeepsReshapesAndAnInputAsOutput) {
  const std::string lines = R"(  input x: f32[4, 6]
  const n: i64[1] = [24]
  y: f32[24] = reshape(x, n)
  output y as "y"
  output x as "x"
)";
  expect_graph(parsed_graph(lines), eliminate_dead_nodes(parsed_graph(lines)), lines);
  const ir::Graph copy = parsed_graph(R"(  input x: f32[3]
  y: f32[3] = identity(x)
  output y as "y"
)");
  expect_graph(copy, eliminate_dead_nodes(copy), R"(  input x: f32[3]
  output x as "y"
)");
}

// Common subexpressions: equal operator, operands and attributes.
TEST(EliminateCommonNodes, OneForEqualCalls) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[4, 6]
  a: f32[4, 6] = relu(x)
  b: f32[4, 6] = relu(x)
  c: f32[4, 6] = exp(a)
  d: f32[4, 6] = exp(b)
  e: f32[4, 1] = reduce_sum(c) {axes = [1]}
  f: f32[1, 6] = reduce_sum(d) {axes = [0]}
  y: f32[4, 6] = add(e, f)
  output y as "y"
  output d as "d"
)");
  expect_graph(g, eliminate_common_nodes(g), R"(  input x: f32[4, 6]
  a: f32[4, 6] = relu(x)
  c: f32[4, 6] = exp(a)
  e: f32[4, 1] = reduce_sum(c) {axes = [1]}
  f: f32[1, 6] = reduce_sum(c) {axes = [0]}
  y: f32[4, 6] = add(e, f)
  output y as "y"
  output c as "d"
)");
}

// Constants are equal by type, shape and bytes.
TEST(EliminateCommonNodes, OneForEqualConstants) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[4, 6]
  const m: i64[2] = [6, 4]
  const n: i64[2] = [6, 4]
  const o: i64[2] = [4, 6]
  const p: i64[2, 1] = [6, 4]
  a: f32[6, 4] = reshape(x, m)
  b: f32[6, 4] = reshape(x, n)
  c: f32[4, 6] = reshape(x, o)
  y: f32[6, 4] = mul(a, b)
  z: i64[2, 1] = neg(p)
  output y as "y"
  output c as "c"
  output z as "z"
  output n as "n"
)");
  expect_graph(g, eliminate_common_nodes(g), R"(  input x: f32[4, 6]
  const m: i64[2] = [6, 4]
  const p: i64[2, 1] = [6, 4]
  a: f32[6, 4] = reshape(x, m)
  y: f32[6, 4] = mul(a, a)
  z: i64[2, 1] = neg(p)
  output y as "y"
  output x as "c"
  output z as "z"
  output m as "n"
)");
}

// Also through several nodes; what depends on an input stays.
TEST(FoldConstants, ComputesWhatHangsOnConstants) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[2, 2]
  const a: f32[2] = [1.0, 2.0]
  const b: f32[2, 1] = [3.0, -4.0]
  const n: i64[2] = [1, 2]
  s: f32[2, 2] = mul(a, b)
  t: f32[2, 2] = neg(s)
  r: f32[1, 2] = reshape(a, n)
  p: f32[2, 2] = add(x, t)
  y: f32[2, 2] = mul(p, r)
  output y as "y"
)");
  auto folded = fold_constants(g, interpret_constants);
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  expect_same_graph_results(g, *folded);
  ASSERT_EQ(folded->nodes.size(), 2u);
  EXPECT_EQ(folded->nodes[0].op->name, "add");
  const ir::ConstantRef n = folded->value(folded->nodes[0].inputs[1]).constant;
  ASSERT_TRUE(n);
  EXPECT_EQ(ir::number_at(*n, 0), -3);
  EXPECT_EQ(ir::number_at(*n, 3), 8);
}

// Nothing reads the indices: they get no value, and the node still goes.
TEST(FoldConstants, FoldsOneOfTwoResults) {
  const ir::Graph g = parsed_graph(R"(  const a: f32[3] = [1.0, 3.0, 2.0]
  const k: i64[1] = [2]
  v: f32[2], i: i64[2] = top_k(a, k) {axis = 0, largest = 1}
  output v as "v"
)");
  auto folded = fold_constants(g, interpret_constants);
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  expect_same_graph_results(g, *folded);
  EXPECT_TRUE(folded->nodes.empty());
  EXPECT_TRUE(folded->value(folded->outputs[0]).constant);
}

// Known elements of 16 bits make no constant, those of the indices do.
TEST(FoldConstants, ComputesBothResultsWhereOneIsKnown) {
  ir::Graph g = parsed_graph(R"(  const a: bf16[1, 1, 3] = [1.0, 3.0, 2.0]
  v: bf16[1, 1, 2], i: i64[1, 1, 2] = max_pool_indices(a) {kernel_shape = [2]}
  output v as "v"
  output i as "i"
)");
  g.value(g.outputs[1]).known = std::vector<ir::Expr>{1, 1};
  const ir::ConstantRef threes =
      ir::make_constant(DType::kBFloat16, {1, 1, 2}, {0x40, 0x40, 0x40, 0x40});
  auto folded = fold_constants(g, [&](const ir::Graph& constants) {
    const Status valid = ir::verify(constants);
    EXPECT_TRUE(valid.ok()) << valid.error().to_string();
    EXPECT_EQ(constants.outputs.size(), 1u);
    return Result<std::vector<ir::ConstantRef>>({threes});
  });
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  EXPECT_TRUE(folded->nodes.empty());
  for (int k : {0, 1}) {
    const ir::ConstantRef c = folded->value(folded->outputs[static_cast<size_t>(k)]).constant;
    ASSERT_TRUE(c);
    for (int i : {0, 1}) EXPECT_EQ(ir::number_at(*c, i), k == 0 ? 3 : 1);
  }
}

// The callback compiles and runs code: it must not be called for nothing.
TEST(FoldConstants, RunsNothingWithoutConstants) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[2]
  y: f32[2] = exp(x)
  output y as "y"
)");
  auto folded = fold_constants(g, [](const ir::Graph&) -> Result<std::vector<ir::ConstantRef>> {
    return invalid("nothing to compute");
  });
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  EXPECT_EQ(ir::to_text(*folded), ir::to_text(g));
}

// A small model must not become an arbitrarily large one: what is beyond the budget stays a node.
TEST(FoldConstants, LeavesWhatWouldGrowWithoutBound) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[2]
  const one: f32[1, 1] = [1.0]
  const shape: i64[2] = [20000, 20000]
  big: f32[20000, 20000] = expand(one, shape)
  more: f32[20000, 20000] = neg(big)
  sum: f32[20000] = reduce_sum(more) {axes = [0], keepdims = 0}
  small: f32[1, 1] = neg(one)
  y: f32[1, 2] = add(x, small)
  output y as "y"
  output sum as "sum"
)");
  auto folded = fold_constants(g, [](const ir::Graph& constants) {
    EXPECT_EQ(constants.nodes.size(), 1u);
    return interpret_constants(constants);
  });
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  std::string names;
  for (const ir::Node& n : folded->nodes) names += std::string(n.op->name) + " ";
  EXPECT_EQ(names, "expand neg reduce_sum add ");
}
// A constant of 160,000 bytes would say no more than its element.
TEST(FoldConstants, LeavesRepeatedElementsToTheirReaders) {
  const auto read_by = [](const std::string& reader) {
    auto folded = fold_constants(parsed_graph(R"(  input x: f32[200, 200]
  const one: f32[1] = [1.0]
  const extents: i64[2] = [200, 200]
  e: f32[200, 200] = expand(one, extents)
)" + reader + "  output y as \"y\"\n"),
                                 interpret_constants);
    EXPECT_TRUE(folded.ok()) << folded.error().to_string();
    return folded->nodes.size();
  };
  EXPECT_EQ(read_by("  y: f32[200, 200] = add(x, e)\n"), 2u);
  EXPECT_EQ(read_by("  s: f32[1, 1] = reduce_sum(e)\n  y: f32[200, 200] = add(x, s)\n"), 1u);
}

TEST(FoldConstants, KeepsToTheGivenBytes) {
  const ir::Graph g = parsed_graph(R"(  const a: f32[2] = [1.0, 2.0]
  const s: i64[2] = [100, 2]
  y: f32[100, 2] = expand(a, s)
  output y as "y"
)");
  for (int64_t free_bytes : {600, 800}) {  // 4 * 24 come with the constants
    auto folded = fold_constants(g, interpret_constants, free_bytes);
    ASSERT_TRUE(folded.ok()) << folded.error().to_string();
    EXPECT_EQ(folded->nodes.size(), free_bytes == 600 ? 1u : 0u);
  }
}
// Results that a folded node consumes are given back to the budget.
TEST(FoldConstants, FoldsLongChains) {
  std::string text =
      "  const a: f32[1, 1] = [1.0]\n  const s: i64[2] = [64, 262144]\n"
      "  t0: f32[64, 262144] = expand(a, s)\n";
  constexpr int kNodes = 12;  // of 64 MiB each
  for (int i = 1; i < kNodes; ++i)
    text += "  t" + std::to_string(i) + ": f32[64, 262144] = neg(t" + std::to_string(i - 1) + ")\n";
  text += "  output t" + std::to_string(kNodes - 1) + " as \"y\"\n";
  size_t run = 0;
  auto folded = fold_constants(parsed_graph(text), [&](const ir::Graph& constants) {
    run = constants.nodes.size();
    return Result<std::vector<ir::ConstantRef>>(invalid("enough"));
  });
  EXPECT_FALSE(folded.ok());
  EXPECT_EQ(run, static_cast<size_t>(kNodes));
}

TEST(SimplifyGraph, FactorsGoIntoWeights) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[1, 2, 5, 5]
  const w: f32[3, 2, 1, 1] = [1.0, 2.0, -1.0, 0.5, 3.0, 1.0]
  const f: f32[3, 1, 1] = [2.0, -1.0, 0.5]
  const v: f32[5, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0]
  const g: f32[2] = [10.0, 0.1]
  c: f32[1, 3, 5, 5] = conv(x, w)
  s: f32[1, 3, 5, 5] = mul(c, f)
  p: f32[1, 3, 5, 2] = matmul(s, v)
  y: f32[1, 3, 5, 2] = mul(g, p)
  output y as "y"
)");
  auto simple = simplify_graph(g);
  ASSERT_TRUE(simple.ok()) << simple.error().to_string();
  expect_same_graph_results(g, *simple);
  // Each product is now one of two constants.
  for (const ir::Node& n : simple->nodes)
    if (n.op->name == "mul") {
      for (ir::ValueId v : n.inputs) EXPECT_TRUE(simple->value(v).constant);
    }
  auto folded = fold_constants(*simple, interpret_constants);
  ASSERT_TRUE(folded.ok()) << folded.error().to_string();
  expect_same_graph_results(g, *folded);
  EXPECT_EQ(folded->nodes.size(), 2u);
}

TEST(SimplifyGraph, KeepsFactorsThatVaryOrAreSharedOrUnknown) {
  for (const char* lines : {R"(  input x: f32[3, 2]
  const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
  const f: f32[3, 1] = [1.0, 2.0, 3.0]
  p: f32[3, 2] = matmul(x, w)
  y: f32[3, 2] = mul(p, f)
  output y as "y"
)",
                            R"(  input x: f32[3, 2]
  const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
  const f: f32[2] = [1.0, 2.0]
  p: f32[3, 2] = matmul(x, w)
  y: f32[3, 2] = mul(p, f)
  output y as "y"
  output p as "p"
)",
                            R"(  input x: f32[3, 2]
  input w: f32[2, 2]
  const f: f32[2] = [1.0, 2.0]
  p: f32[3, 2] = matmul(x, w)
  y: f32[3, 2] = mul(p, f)
  output y as "y"
)",
                            R"(  input x: f32[3, 1]
  const w: f32[1, 1] = [2.0]
  const f: f32[2] = [1.0, 2.0]
  p: f32[3, 1] = matmul(x, w)
  y: f32[3, 2] = mul(p, f)
  output y as "y"
)"}) {
    auto simple = simplify_graph(parsed_graph(lines));
    ASSERT_TRUE(simple.ok()) << simple.error().to_string();
    expect_graph(parsed_graph(lines), *simple, lines);
  }
}

TEST(MultiplyInstead, OfDivisionsByConstants) {
  const auto op_of = [](const std::string& constant, const std::string& rest) {
    const ir::Graph g = parsed_graph("  input x: f32[2, 3]\n  const c: " + constant +
                                     "\n  d: f32[2, 3] = div(x, c)\n" + rest);
    const ir::Graph after = multiply_instead(g);
    expect_same_graph_results(g, after);
    return std::string(after.nodes[0].op->name);
  };
  const std::string itself = "  output d as \"d\"\n";
  EXPECT_EQ(op_of("f32[] = [1.4142135]", itself), "mul");
  EXPECT_EQ(op_of("f32[3] = [8.0, -0.3, 1e-30]", itself), "mul");
  // Reciprocals that are no normal numbers.
  EXPECT_EQ(op_of("f32[3] = [8.0, 0.0, 1.0]", itself), "div");
  EXPECT_EQ(op_of("f32[] = [3e38]", itself), "div");
  // What is rounded at once, or moved and limited before, and what asks how large it is.
  EXPECT_EQ(op_of("f32[] = [0.1]", "  y: f32[2, 3] = round(d)\n  output y as \"y\"\n"), "div");
  EXPECT_EQ(op_of("f32[] = [0.1]",
                  "  a: f32[2, 3] = add(d, x)\n  y: i32[2, 3] = cast(a) {to = \"i32\"}\n"
                  "  output y as \"y\"\n"),
            "div");
  EXPECT_EQ(op_of("f32[] = [0.1]", "  y: f32[2, 3] = erf(d)\n  output y as \"y\"\n"), "mul");
}

}  // namespace
}  // namespace tilewright::passes
