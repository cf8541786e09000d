// Which way transposed convolutions become ordinary ones, and that these compute the same.
#include <gtest/gtest.h>

#include "ir/graph/infer.h"
#include "passes/decisions/decisions.h"
#include "passes/lower.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// y = conv_transpose(x, w)
std::string lines_of(const std::string& x, const std::string& w, const std::string& y,
                     const std::string& attributes) {
  return "  input x: " + x + "\n  input w: " + w + "\n  y: " + y + " = conv_transpose(x, w)" +
         (attributes.empty() ? "" : " {" + attributes + "}") + "\n  output y as \"y\"\n";
}
size_t count(const ir::Graph& g, const std::string& op) {
  size_t n = 0;
  for (const ir::Node& node : g.nodes) n += node.op->name == op;
  return n;
}

// Few channels: with their phases they fill a vector. Weights are [phases, c, steps], backwards.
TEST(OpenConvTranspose, PhasesAsChannelsOfOneConvolution) {
  const ir::Graph g = parsed_graph(
      lines_of("f32[2, 5, 6]", "f32[5, 3, 4]", "f32[2, 3, 13]", "pads = [1, 0], strides = [2]"));
  expect_graph(g, open_conv_transpose(g), R"(  input x: f32[2, 5, 6]
  input w: f32[5, 3, 4]
  const v: i64[5] = [1, 5, 3, 2, 2]
  const v_1: i64[3] = [6, 5, 2]
  const v_2: i64[1] = [-1]
  const v_3: i64[1] = [-9223372036854775808]
  const v_4: i64[1] = [2]
  const v_5: i64[1] = [-1]
  const v_6: i64[4] = [2, 3, 2, 7]
  const v_7: i64[3] = [2, 3, 14]
  const v_8: i64[6] = [0, 0, -1, 0, 0, 0]
  y: f32[1, 5, 3, 2, 2] = reshape(w, v) {allowzero = 1}
  y_1: f32[1, 3, 2, 5, 2] = transpose(y) {perm = [0, 2, 4, 1, 3]}
  y_2: f32[6, 5, 2] = reshape(y_1, v_1) {allowzero = 1}
  y_3: f32[6, 5, 2] = slice(y_2, v_2, v_3, v_4, v_5)
  y_4: f32[2, 6, 7] = conv(x, y_3) {group = 1, pads = [1, 1]}
  y_5: f32[2, 3, 2, 7] = reshape(y_4, v_6) {allowzero = 1}
  y_6: f32[2, 3, 7, 2] = transpose(y_5) {perm = [0, 1, 3, 2]}
  y_7: f32[2, 3, 14] = reshape(y_6, v_7) {allowzero = 1}
  y_8: f32[2, 3, 13] = pad(y_7, v_8)
  output y_8 as "y"
)");
}

// Of four phases one has a kernel: what stands beside it are zeros, and so are the rows between.
TEST(OpenConvTranspose, PhasesWithoutAKernelAreZerosOfTheirNeighbours) {
  const ir::Graph g =
      parsed_graph(lines_of("f32[2, 40, 6, 7]", "f32[40, 48, 1, 1]", "f32[2, 48, 12, 14]",
                            "pads = [0, 0, -1, -1], strides = [2, 2]"));
  const ir::Graph opened = open_conv_transpose(g);
  EXPECT_EQ(count(opened, "conv"), 1u);
  EXPECT_EQ(count(opened, "concat"), 2u);
  EXPECT_EQ(count(opened, "expand"), 2u);
  expect_same_graph_results(g, opened);
}

// A kernel of 3 elements is one of 1 and one of 2, where a joint convolution would take 2 for both. Each takes
// matrices of the weights.
TEST(OpenConvTranspose, PhasesOfTheirOwn) {
  const ir::Graph g = parsed_graph(
      lines_of("f32[1, 5, 6]", "f32[5, 16, 3]", "f32[1, 16, 12]", "pads = [1, 0], strides = [2]"));
  expect_graph(g, open_conv_transpose(g), R"(  input x: f32[1, 5, 6]
  input w: f32[5, 16, 3]
  const v: i64[1] = [1]
  const v_1: i64[1] = [2]
  const v_2: i64[1] = [0]
  const v_3: i64[1] = [1]
  const v_4: i64[1] = [2]
  const v_5: i64[1] = [-9223372036854775808]
  const v_6: i64[1] = [0]
  const v_7: i64[1] = [-2]
  y: f32[3, 5, 16] = transpose(w) {perm = [2, 0, 1]}
  y_1: f32[1, 5, 16] = slice(y, v, v_1, v_2, v_3)
  y_2: f32[16, 5, 1] = transpose(y_1) {perm = [2, 1, 0]}
  y_3: f32[1, 16, 6] = conv(x, y_2) {group = 1, pads = [0, 0]}
  y_4: f32[2, 5, 16] = slice(y, v_4, v_5, v_6, v_7)
  y_5: f32[16, 5, 2] = transpose(y_4) {perm = [2, 1, 0]}
  y_6: f32[1, 16, 6] = conv(x, y_5) {group = 1, pads = [0, 1]}
  y_7: f32[1, 16, 12] = concat(y_3, y_6) {axis = 2, interleave = 1}
  output y_7 as "y"
)");
}

// Windows of many positions are sliced where they lie: no pass parts these all at once.
TEST(OpenConvTranspose, PhasesOfALargeWindow) {
  const auto of = [](const std::string& w, const std::string& y) {
    return open_conv_transpose(
        parsed_graph(lines_of("f32[1, 5, 6]", w, y, "pads = [1, 0], strides = [2]")));
  };
  EXPECT_EQ(count(of("f32[5, 16, 15]", "f32[1, 16, 24]"), "transpose"), 3u);
  EXPECT_EQ(count(of("f32[5, 16, 17]", "f32[1, 16, 26]"), "transpose"), 2u);
  const ir::Graph g = parsed_graph(
      lines_of("f32[1, 5, 6]", "f32[5, 16, 17]", "f32[1, 16, 26]", "pads = [1, 0], strides = [2]"));
  expect_same_graph_results(g, open_conv_transpose(g));
}

// With a stride of 1 there is one phase: a convolution with the kernel backwards. Sums of halves stay
// in the type that the node has.
TEST(OpenConvTranspose, OnePhaseIsAConvolution) {
  const ir::Graph g =
      parsed_graph(lines_of("bf16[2, 5, 6, 4]", "bf16[5, 3, 1, 3]", "f32[2, 3, 6, 4]",
                            "out_dtype = \"f32\", pads = [0, 1, 0, 1]"));
  const ir::Graph after = open_conv_transpose(g);
  expect_same_graph_results(g, after);
  EXPECT_EQ(count(after, "conv"), 1u);
  EXPECT_EQ(count(after, "concat") + count(after, "pad") + count(after, "conv_transpose"), 0u);
  EXPECT_EQ(to_string(after.value(after.outputs[0]).type), "f32[2, 3, 6, 4]");
  EXPECT_EQ(to_string(after.value(after.nodes.back().inputs[0]).type), "bf16[2, 5, 6, 4]");
}

// One that is dilated is dilated as a convolution, in dimensions that take no strides; in others zeros are written
// between the kernel's elements.
TEST(OpenConvTranspose, ADilatedPhaseIsADilatedConvolution) {
  const ir::Graph g =
      parsed_graph(lines_of("f32[2, 5, 9, 8]", "f32[5, 3, 3, 2]", "f32[2, 3, 13, 13]",
                            "dilations = [4, 5], pads = [2, 0, 2, 0]"));
  const ir::Graph after = open_conv_transpose(g);
  expect_same_graph_results(g, after);
  EXPECT_EQ(count(after, "conv"), 1u);
  EXPECT_EQ(count(after, "pad") + count(after, "conv_transpose"), 0u) << ir::to_text(after);
  for (const ir::Node& n : after.nodes)
    if (n.op->name == "conv")
      EXPECT_EQ(to_string(after.value(n.inputs[1]).type), "f32[3, 5, 3, 2]");
  const ir::Graph mixed =
      parsed_graph(lines_of("f32[2, 5, 9, 8]", "f32[5, 3, 3, 2]", "f32[2, 3, 17, 18]",
                            "dilations = [4, 3], pads = [0, 0, 0, 0], strides = [1, 2]"));
  expect_same_graph_results(mixed, open_conv_transpose(mixed));
}

TEST(OpenConvTranspose, ExtentsMayBeSymbolic) {
  const ir::Graph odd = open_conv_transpose(parsed_graph(
      lines_of("f32[n, 5, h]", "f32[5, 3, 3]", "f32[n, 3, h * 2 + 1]", "strides = [2]")));
  EXPECT_EQ(count(odd, "conv"), 1u);
  EXPECT_EQ(to_string(odd.value(odd.outputs[0]).type), "f32[n, 3, h * 2 + 1]");
  // Of each phase there are as many results as x has elements.
  const ir::Graph even = open_conv_transpose(parsed_graph(lines_of(
      "f32[n, 5, h]", "f32[5, 32, 4]", "f32[n, 32, h * 2]", "pads = [1, 1], strides = [2]")));
  EXPECT_EQ(count(even, "conv"), 2u);
  EXPECT_EQ(count(even, "concat"), 1u);
  EXPECT_EQ(to_string(even.value(even.outputs[0]).type), "f32[n, 32, h * 2]");
}

TEST(OpenConvTranspose, WeightsOfUnknownExtentsStay) {
  const std::string lines =
      lines_of("f32[2, 5, 6]", "f32[5, m, 3]", "f32[2, m, 13]", "strides = [2]");
  EXPECT_EQ(ir::to_text(open_conv_transpose(parsed_graph(lines))),
            ir::to_text(parsed_graph(lines)));
}

// Four results, of which a joint convolution would make 2^40 first; and weights that would
// be as long with their zeros.
TEST(OpenConvTranspose, WhatWouldNotFitInMemoryStays) {
  for (const std::string& lines :
       {lines_of("f32[1, 1, 1048577]", "f32[1, 1, 1]", "f32[1, 1, 4]",
                 "pads = [1099511627773, 0], strides = [1048576]"),
        lines_of("f32[1, 1, 1]", "f32[1, 1, 3]", "f32[1, 1, 3]",
                 "dilations = [274877906944], pads = [274877906943, 274877906943]")}) {
    const ir::Graph g = parsed_graph(lines);
    EXPECT_EQ(ir::to_text(open_conv_transpose(g)), ir::to_text(g));
  }
}

// Every answer computes the same; the usual one is the one with less to do.
TEST(OpenConvTranspose, IsDecided) {
  const ir::Graph g = parsed_graph(
      lines_of("f32[1, 5, 6]", "f32[5, 16, 3]", "f32[1, 16, 12]", "pads = [1, 0], strides = [2]"));
  for (int64_t apart : {0, 1}) {
    Decisions decisions({{"y.separate_phases", apart}});
    const ir::Graph after = open_conv_transpose(g, &decisions);
    EXPECT_TRUE(decisions.check_answers("test").ok());
    ASSERT_EQ(decisions.made().size(), 1u);
    EXPECT_EQ(decisions.made()[0].usual, 1);
    EXPECT_EQ(count(after, "conv"), apart ? 2u : 1u);
    expect_same_graph_results(g, after);
  }
}

TEST(OpenConvTranspose, IsDoneAtEveryLevel) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kStandard, Numerics::kRelaxed}) {
    LowerOptions options;
    options.numerics = numerics;
    options.fold = false;
    auto g = lower_graph(
        parsed_graph(lines_of("f32[1, 5, 6]", "f32[5, 3, 4]", "f32[1, 3, 14]", "strides = [2]")),
        options);
    ASSERT_TRUE(g.ok()) << g.error().to_string();
    EXPECT_EQ(count(*g, "conv"), 1u) << ir::to_text(*g);
    EXPECT_EQ(count(*g, "conv_transpose"), 0u) << ir::to_text(*g);
  }
}

class RandomTransposed {
 public:
  explicit RandomTransposed(unsigned seed) : random_(seed) {}
  // A graph of one node, or nothing where more would be cut off than there is.
  std::optional<ir::Graph> graph() {
    const int n = below(3) + 1;
    const int64_t group = below(3) ? 1 : 2, c = group * (1 + below(3));
    ir::TensorType x{kTypes[below(4)], {Expr(1 + below(2)), Expr(c)}},
        w{x.dtype, {Expr(c), Expr(pick({1, 2, 5, 16}))}};
    std::vector<int64_t> strides, dilations, pads;
    for (int d = 0; d < n; ++d) {
      x.dims.push_back(1 + below(n == 3 ? 3 : 6));
      w.dims.push_back(1 + below(4));
      strides.push_back(1 + below(3));
      dilations.push_back(pick({1, 1, 1, 2, 3}));
    }
    for (int d = 0; d < 2 * n; ++d) pads.push_back(below(6) - 2);
    ir::Graph g;
    g.name = "g";
    g.inputs = {g.add_value("x", x), g.add_value("w", w)};
    auto made = ir::add_node(
        g, "conv_transpose", g.inputs,
        {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}}, 1, "y",
        {});
    if (!made.ok()) return std::nullopt;
    g.outputs = *made;
    g.output_names = {"y"};
    return g;
  }
  bool chance() { return below(2) != 0; }

 private:
  using Expr = ir::Expr;
  static constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16,
                                     DType::kInt32};
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int64_t pick(std::vector<int64_t> values) {
    return values[static_cast<size_t>(below(static_cast<int>(values.size())))];
  }
  std::mt19937 random_;
};

// Sums of small whole numbers are exact in every type and order.
TEST(OpenConvTranspose, RandomOnesComputeTheSame) {
  size_t joint = 0, apart = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomTransposed random(seed);
    const auto g = random.graph();
    if (!g) continue;
    Decisions decisions({{"y.separate_phases", random.chance() ? 1 : 0}});
    const ir::Graph after = open_conv_transpose(*g, seed % 2 ? &decisions : nullptr);
    EXPECT_EQ(count(after, "conv_transpose"), 0u);
    (count(after, "concat") ? apart : joint) += 1;
    expect_same_graph_results(*g, after);
    if (testing::Test::HasFailure()) FAIL() << ir::to_text(*g);
  }
  EXPECT_GT(joint, 50u);
  EXPECT_GT(apart, 20u);
}

}  // namespace
}  // namespace tilewright::passes
