// Which layouts values get, where copies stand between them, and what becomes a view.
#include <gtest/gtest.h>

#include <set>

#include "ir/graph/view_layouts.h"
#include "passes/analysis/views.h"
#include "passes/build_loops.h"
#include "passes/decisions/decisions.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

ir::ConstantRef weights(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < *element_count(shape); ++i)
    values.push_back(static_cast<float>(i % 7) - 3);
  return ir::make_constant_of<float>(DType::kFloat32, shape, values);
}

// Channels innermost, whatever that costs for graphs as small as these.
ir::Graph innermost(const ir::Graph& g) {
  Decisions asked;
  choose_layouts(g, {}, &asked);
  Answers answers;
  for (const Decision& d : asked.made())
    if (d.name.ends_with(".layout")) answers[d.name] = 1;
  Decisions given(answers);
  return choose_layouts(g, {}, &given);
}

TEST(ChooseLayouts, ChannelsInnermostAroundConvolutions) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[1, 2, 5, 5]
  const w: f32[3, 2, 3, 3] = #0
  const v: f32[4, 3, 3, 3] = #1
  a: f32[1, 3, 3, 3] = conv(x, w)
  b: f32[1, 3, 3, 3] = relu(a)
  c: f32[1, 4, 1, 1] = conv(b, v)
  output c as "c"
)",
                                   {weights({3, 2, 3, 3}), weights({4, 3, 3, 3})});
  expect_graph(g, innermost(g), R"(  input x: f32[1, 2, 5, 5]
  const w: f32[3, 2, 3, 3] = #0
  const v: f32[4, 3, 3, 3] = #1
  a: f32[1, 3, 3, 3] layout(d0, d2, d3, d1) = conv(x, w)
  b: f32[1, 3, 3, 3] layout(d0, d2, d3, d1) = relu(a)
  c: f32[1, 4, 1, 1] = conv(b, v)
  output c as "c"
)");
}
// The gradient of weights wants both of its operands so, and gives what is none of their kind.
TEST(ChooseLayouts, ChannelsInnermostForGradientsOfWeights) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[4, 16, 9, 9]
  input y: f32[4, 32, 9, 9]
  a: f32[4, 16, 9, 9] = relu(x)
  b: f32[4, 32, 9, 9] = relu(y)
  c: f32[32, 16, 1, 1] = conv_weights_gradient(b, a) {kernel_shape = [1, 1]}
  output c as "c"
)");
  expect_graph(g, choose_layouts(g, {}), R"(  input x: f32[4, 16, 9, 9]
  input y: f32[4, 32, 9, 9]
  a: f32[4, 16, 9, 9] layout(d0, d2, d3, d1) = identity(x)
  a_1: f32[4, 16, 9, 9] layout(d0, d2, d3, d1) = relu(a)
  b: f32[4, 32, 9, 9] layout(d0, d2, d3, d1) = identity(y)
  b_1: f32[4, 32, 9, 9] layout(d0, d2, d3, d1) = relu(b)
  c: f32[32, 16, 1, 1] = conv_weights_gradient(b_1, a_1) {kernel_shape = [1, 1]}
  output c as "c"
)");
}
// Each kind of window keeps the channels where the convolution before it has them.
TEST(ChooseLayouts, PoolsLieAsTheConvolutionBeforeThem) {
  for (const std::string pool : {"max_pool", "average_pool", "sum_pool"}) {
    const ir::Graph g = parsed_graph(R"(  input x: f32[1, 2, 9, 9]
  const w: f32[8, 2, 3, 3] = #0
  a: f32[1, 8, 7, 7] = conv(x, w)
  b: f32[1, 8, 5, 5] = )" + pool + R"((a) {kernel_shape = [3, 3]}
  c: f32[1, 8, 5, 5] = relu(b)
  output c as "c"
)",
                                     {weights({8, 2, 3, 3})});
    const ir::Graph after = innermost(g);
    expect_same_graph_results(g, after);
    for (const ir::Node& n : after.nodes)
      if (n.op->name == pool)
        EXPECT_EQ(after.value(n.outputs[0]).layout, ir::permuted_layout({0, 2, 3, 1}))
            << ir::to_text(after);
  }
}
TEST(ChooseLayouts, CopiesStandBetweenRowMajorValuesAndTheOthers) {
  const ir::Graph g = parsed_graph(R"(  input x: f32[1, 6, 5, 5]
  const w: f32[3, 6, 3, 3] = #0
  a: f32[1, 3, 3, 3] = conv(x, w)
  b: f32[1, 6, 5, 5] = relu(x)
  const shape: i64[2] = [1, 27]
  f: f32[1, 27] = reshape(a, shape) {allowzero = 0}
  output a as "a"
  output b as "b"
  output f as "f"
)",
                                   {weights({3, 6, 3, 3})});
  expect_graph(g, innermost(g), R"(  input x: f32[1, 6, 5, 5]
  const w: f32[3, 6, 3, 3] = #0
  const shape: i64[2] = [1, 27]
  a: f32[1, 6, 5, 5] layout(d0, d2, d3, d1) = identity(x)
  a_1: f32[1, 3, 3, 3] layout(d0, d2, d3, d1) = conv(a, w)
  b: f32[1, 6, 5, 5] layout(d0, d2, d3, d1) = relu(a)
  f: f32[1, 3, 3, 3] = identity(a_1)
  f_1: f32[1, 27] = reshape(f, shape) {allowzero = 0}
  f_2: f32[1, 6, 5, 5] = identity(b)
  output f as "a"
  output f_2 as "b"
  output f_1 as "f"
)");
}
TEST(ChooseLayouts, AViewBetweenConvolutionsIsNoDetour) {
  const ir::Graph after = innermost(parsed_graph(R"(  input x: f32[1, 6, 4, 4]
  const w: f32[8, 6, 1, 1] = #0
  const v: f32[8, 8, 3] = #1
  a: f32[1, 8, 4, 4] = conv(x, w)
  const shape: i64[3] = [1, 8, 16]
  b: f32[1, 8, 16] = reshape(a, shape) {allowzero = 0}
  c: f32[1, 8, 14] = conv(b, v)
  output c as "c"
)",
                                                 {weights({8, 6, 1, 1}), weights({8, 8, 3})}));
  int copies = 0;
  for (const ir::Node& n : after.nodes) copies += n.op->name == "identity";
  EXPECT_EQ(copies, 2) << ir::to_text(after);  // of the input and of the result
}
// Operands of the run that results do not lie along are copied so that they do.
TEST(ChooseLayouts, PacksOperandsOfProducts) {
  const ir::Graph g = parsed_graph(R"(  input a: f32[7, 4]
  input b: f32[5, 4]
  input c: f32[2, 7, 4]
  input d: f32[2, 5, 4]
  input x: f32[1, 3, 6, 6]
  input w: f32[2, 3, 3, 3]
  y: f32[7, 5] = matmul(a, b) {trans_b = 1}
  z: f32[2, 7, 5] = einsum(c, d) {equation = "bid,bjd->bij"}
  v: f32[1, 2, 4, 4] = conv(x, w)
  output y as "y"
  output z as "z"
  output v as "v"
)");
  const ir::Graph after = innermost(g);
  expect_same_graph_results(g, after);
  const std::string text = ir::to_text(after);
  for (const char* copy :
       {"f32[5, 4] layout(d1, d0) = identity(b)", "f32[2, 5, 4] layout(d0, d2, d1) = identity(d)",
        "f32[2, 3, 3, 3] layout(d2, d3, d1, d0) = identity(w)"})
    EXPECT_NE(text.find(copy), std::string::npos) << copy << "\n" << text;
}
// In whichever order their rows lie; a value whose columns are innermost already is left alone.
TEST(ChooseLayouts, PacksHeadsThatLieAsTheyWereTransposed) {
  const ir::Graph g = parsed_graph(R"(  input a: f32[2, 3, 7, 4]
  input b: f32[2, 5, 3, 4]
  input c: f32[2, 4, 3, 5]
  heads: f32[2, 3, 5, 4] = transpose(b) {perm = [0, 2, 1, 3]}
  others: f32[2, 3, 4, 5] = transpose(c) {perm = [0, 2, 1, 3]}
  y: f32[2, 3, 7, 5] = matmul(a, heads) {trans_b = 1}
  z: f32[2, 3, 7, 5] = matmul(a, others)
  output y as "y"
  output z as "z"
)");
  const ir::Graph after = innermost(g);
  expect_same_graph_results(g, after);
  const std::string text = ir::to_text(after);
  EXPECT_NE(text.find("f32[2, 3, 5, 4] layout(d0, d1, d3, d2) = identity(heads)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("identity(others)"), std::string::npos) << text;
}
// Groups of four terms, for a vector of columns.
TEST(ChooseLayouts, PacksOperandsOfDotProducts) {
  const ir::Graph g = parsed_graph(R"(  input a: u8[7, 16]
  input b: i8[16, 20]
  input c: u8[2, 7, 16]
  input d: i8[2, 4, 16]
  input e: i8[16, 20]
  q: i8[16, 20] = relu(e)
  y: i32[7, 20] = matmul(a, b) {out_dtype = "i32"}
  z: i32[2, 7, 4] = matmul(c, d) {out_dtype = "i32", trans_b = 1}
  v: i32[7, 20] = matmul(a, q) {out_dtype = "i32"}
  output y as "y"
  output z as "z"
  output v as "v"
)");
  const ir::Graph after = fuse_operators(innermost(g));
  expect_same_graph_results(g, after);
  const std::string text = ir::to_text(after);
  for (const char* copy : {"i8[16, 20] layout(d1/8, d0/4, d1%8, d0%4) = identity(b)",
                           "i8[2, 4, 16] layout(d0, d1/4, d2/4, d1%4, d2%4) = identity(d)",
                           "i8[16, 20] layout(d1/8, d0/4, d1%8, d0%4) = identity(q)"})
    EXPECT_NE(text.find(copy), std::string::npos) << copy << "\n" << text;
  std::set<int> groups;
  for (const ir::Node& n : after.nodes) groups.insert(n.group);
  EXPECT_EQ(groups.size(), after.nodes.size() - 1) << "what makes q is packed at once\n" << text;
}
TEST(ChooseLayouts, FewRowsPackNothing) {
  const std::string lines = R"(  input a: f32[1, 4]
  input b: f32[5, 4]
  y: f32[1, 5] = matmul(a, b) {trans_b = 1}
  output y as "y"
)";
  expect_graph(parsed_graph(lines), innermost(parsed_graph(lines)), lines);
}
// Nodes that move their elements in memory.
int moves(const ir::Graph& g) {
  int n = 0;
  for (const ir::Node& node : g.nodes) {
    const bool may = node.op->name == "transpose" || node.op->name == "reshape";
    n += node.op->name == "identity" || (may && !is_view(g, node));
  }
  return n;
}
void expect_moves(const std::string& lines, int count,
                  const std::vector<ir::ConstantRef>& constants = {}) {
  SCOPED_TRACE(lines);
  const ir::Graph before = parsed_graph(lines, constants), after = innermost(before);
  expect_same_graph_results(before, after);
  EXPECT_EQ(moves(after), count) << ir::to_text(after);
}
TEST(ChooseLayouts, ImagesWithChannelsLastStayAsTheyAre) {
  expect_moves(R"(  input x: f32[1, 5, 4, 6]
  const w: f32[8, 6, 3, 3] = #0
  a: f32[1, 6, 5, 4] = transpose(x) {perm = [0, 3, 1, 2]}
  b: f32[1, 8, 3, 2] = conv(a, w)
  y: f32[1, 3, 2, 8] = transpose(b) {perm = [0, 2, 3, 1]}
  output y as "y"
)",
               0, {weights({8, 6, 3, 3})});
}
TEST(ChooseLayouts, PatchesOfAnImageBecomeRows) {
  expect_moves(R"(  input x: f32[1, 3, 4, 4]
  const w: f32[6, 3, 2, 2] = #0
  const shape: i64[3] = [1, 6, 4]
  a: f32[1, 6, 2, 2] = conv(x, w) {strides = [2, 2]}
  b: f32[1, 6, 4] = reshape(a, shape) {allowzero = 0}
  y: f32[1, 4, 6] = transpose(b) {perm = [0, 2, 1]}
  output y as "y"
)",
               0, {weights({6, 3, 2, 2})});
}
TEST(ChooseLayouts, HeadsOfAttentionAreViews) {
  const std::string heads = R"(  input x: f32[2, 5, 12]
  const split: i64[4] = [2, 5, 3, 4]
  const join: i64[3] = [2, 5, 12]
  a: f32[2, 5, 3, 4] = reshape(x, split) {allowzero = 0}
  b: f32[2, 3, 5, 4] = transpose(a) {perm = [0, 2, 1, 3]}
  c: f32[2, 3, 5, 4] = exp(b)
)";
  expect_moves(heads + R"(  d: f32[2, 5, 3, 4] = transpose(c) {perm = [0, 2, 1, 3]}
  y: f32[2, 5, 12] = reshape(d, join) {allowzero = 0}
  output y as "y"
)",
               0);
  // The innermost dimension changes; the value is wanted in two orders.
  expect_moves(
      heads + "  y: f32[2, 3, 4, 5] = transpose(c) {perm = [0, 1, 3, 2]}\n  output y as \"y\"\n",
      1);
  expect_moves(heads +
                   "  y: f32[2, 5, 3, 4] = transpose(c) {perm = [0, 2, 1, 3]}\n  output y as "
                   "\"y\"\n  output c as \"c\"\n",
               1);
}
TEST(ReshapedLayout, FollowsTheElements) {
  auto type = [](std::vector<ir::Expr> dims) { return ir::TensorType{DType::kFloat32, dims}; };
  const ir::Layout image = ir::permuted_layout({0, 2, 3, 1});
  const auto rows = reshaped_layout(image, type({2, 6, 4, 5}), type({2, 6, 20}));
  ASSERT_TRUE(rows);
  EXPECT_EQ(*rows, ir::permuted_layout({0, 2, 1}));
  const auto parts = reshaped_layout(image, type({2, 6, 4, 5}), type({2, 2, 3, 4, 1, 5}));
  ASSERT_TRUE(parts);
  EXPECT_TRUE(
      is_same_order(*parts, ir::permuted_layout({0, 3, 4, 5, 1, 2}), type({2, 2, 3, 4, 1, 5})));
  EXPECT_FALSE(reshaped_layout(image, type({2, 6, 4, 5}), type({2, 120})));
  EXPECT_FALSE(reshaped_layout(image, type({2, 6, 4, 5}), type({2, 8, 15})));
  EXPECT_EQ(*reshaped_layout({}, type({2, 6}), type({3, 4})), ir::Layout{});
}
TEST(ChooseLayouts, WithoutConvolutionsAllStays) {
  const std::string lines = R"(  input x: f32[2, 3, 4]
  a: f32[2, 3, 4] = relu(x)
  y: f32[2, 4, 3] = transpose(a) {perm = [0, 2, 1]}
  output y as "y"
)";
  expect_graph(parsed_graph(lines), innermost(parsed_graph(lines)), lines);
}

// Are the channels of the only convolution or pool of a graph innermost?
bool chosen_innermost(const std::string& x, const std::string& y, const std::string& node,
                      const Shape& w) {
  const bool conv = !w.empty();
  const ir::Graph g =
      parsed_graph("  input x: f32" + x + "\n" +
                       (conv ? "  const w: f32" + tilewright::to_string(w) + " = #0\n" : "") +
                       "  y: f32" + y + " = " + node + "\n  output y as \"y\"\n",
                   conv ? std::vector{weights(w)} : std::vector<ir::ConstantRef>{});
  ir::MachineDescription machine;
  machine.vector_bytes = 64;
  Decisions asked;
  choose_layouts(g, machine, &asked);
  return asked.made().front().answer == 1;
}
TEST(ChooseLayouts, RowMajorWhereChannelsFillNoVector) {
  EXPECT_TRUE(chosen_innermost("[1, 64, 40, 40]", "[1, 64, 38, 38]", "conv(x, w)", {64, 64, 3, 3}));
  EXPECT_FALSE(chosen_innermost("[1, 64, 40, 40]", "[1, 3, 38, 38]", "conv(x, w)", {3, 64, 3, 3}));
  // Rows as short as that fill none either.
  EXPECT_TRUE(chosen_innermost("[1, 64, 40, 4]", "[1, 3, 38, 2]", "conv(x, w)", {3, 64, 3, 3}));
  // Side by side lie the pixels of all rows, for windows of one.
  EXPECT_FALSE(chosen_innermost("[1, 64, 40, 4]", "[1, 3, 40, 4]", "conv(x, w)", {3, 64, 1, 1}));
  // Pixels that are read with strides are gathered.
  EXPECT_TRUE(chosen_innermost("[1, 64, 40, 40]", "[1, 6, 13, 13]", "conv(x, w) {strides = [3, 3]}",
                               {6, 64, 3, 3}));
}
TEST(ChooseLayouts, RowMajorForGroupsThatFillNoVector) {
  const std::string of_6 = "conv(x, w) {group = 16}", of_16 = "conv(x, w) {group = 4}";
  EXPECT_FALSE(chosen_innermost("[1, 96, 40, 40]", "[1, 96, 38, 38]", of_6, {96, 6, 3, 3}));
  EXPECT_TRUE(chosen_innermost("[1, 64, 40, 40]", "[1, 64, 38, 38]", of_16, {64, 16, 3, 3}));
}
// Copies of both operands would take longer than to put vectors of pixels together.
TEST(ChooseLayouts, RowMajorWhereAWindowIsLittleWork) {
  EXPECT_FALSE(chosen_innermost("[1, 30, 3761]", "[1, 30, 1880]",
                                "average_pool(x) {kernel_shape = [2], strides = [2]}", {}));
  EXPECT_FALSE(chosen_innermost("[1, 73, 531]", "[1, 73, 177]",
                                "conv(x, w) {group = 73, strides = [3], pads = [1, 1]}",
                                {73, 1, 3}));
}
TEST(ChooseLayouts, PoolsOfFewChannelsAreRowMajorUnlessGuarded) {
  EXPECT_FALSE(chosen_innermost("[1, 3, 40, 40]", "[1, 3, 38, 38]",
                                "max_pool(x) {kernel_shape = [3, 3]}", {}));
  EXPECT_TRUE(chosen_innermost(
      "[1, 3, 40, 40]", "[1, 3, 20, 20]",
      "max_pool(x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}", {}));
}

}  // namespace
}  // namespace tilewright::passes
