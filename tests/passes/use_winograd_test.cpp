// Which convolutions become Winograd convolutions, and what the cost says of them.
#include <gtest/gtest.h>

#include "passes/build_loops.h"
#include "passes/cost/winograd_cost.h"
#include "passes/lower.h"
#include "passes/schedule/rules/choose_trace.h"
#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// y = conv(x, w) of one square image with `pads = [1, 1, 1, 1]` unless others are given.
std::string conv_lines(const std::string& x, const std::string& w, const std::string& y,
                       const std::string& attributes = "pads = [1, 1, 1, 1]") {
  return "  input x: " + x + "\n  const w: " + w + " = #0\n  y: " + y + " = conv(x, w) {" +
         attributes + "}\n  output y as \"y\"\n";
}
ir::ConstantRef zeros(DType t, const Shape& shape) {
  return bytes(t, shape,
               std::vector<uint8_t>(static_cast<size_t>(*element_count(shape) * byte_size(t))));
}
ir::Graph rewritten(const std::string& lines, const ir::ConstantRef& w) {
  return use_winograd(parsed_graph(lines, {w}), {});
}
bool is_rewritten(const std::string& lines, const ir::ConstantRef& w) {
  bool found = false;
  for (const ir::Node& n : rewritten(lines, w).nodes) found |= n.op->name == "winograd_conv";
  return found;
}

const ir::ConstantRef kWeights = zeros(DType::kFloat32, {64, 64, 3, 3});
const std::string kLarge = "f32[n, 64, 56, 56]";

TEST(UseWinograd, LargeLayers) {
  const ir::Graph g = rewritten(conv_lines(kLarge, "f32[64, 64, 3, 3]", kLarge), kWeights);
  auto verified = ir::verify(g);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string();
  ASSERT_EQ(g.nodes.size(), 2U) << ir::to_text(g);
  EXPECT_EQ(g.nodes[0].op->name, "winograd_weights");
  EXPECT_EQ(g.nodes[1].op->name, "winograd_conv");
  EXPECT_EQ(g.outputs[0], g.nodes[1].outputs[0]);
}

TEST(UseWinograd, PaddingOfExtentsIsNumbers) {
  const ir::Graph g = rewritten(
      conv_lines(kLarge, "f32[64, 64, 3, 3]", kLarge, "pads = extents[1, 1, 1, 1]"), kWeights);
  ASSERT_EQ(g.nodes.size(), 2U) << ir::to_text(g);
  EXPECT_EQ(ir::NodeView(g, g.nodes[1]).attr_ints("pads"), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(UseWinograd, OtherWindowsStay) {
  const std::string w = "f32[64, 64, 3, 3]";
  EXPECT_FALSE(is_rewritten(
      conv_lines("f32[n, 64, 112, 112]", w, kLarge, "pads = [1, 1, 1, 1], strides = [2, 2]"),
      kWeights));
  EXPECT_FALSE(is_rewritten(
      conv_lines(kLarge, w, kLarge, "pads = [2, 2, 2, 2], dilations = [2, 2]"), kWeights));
  EXPECT_FALSE(is_rewritten(
      conv_lines(kLarge, "f32[64, 32, 3, 3]", kLarge, "pads = [1, 1, 1, 1], group = 2"),
      zeros(DType::kFloat32, {64, 32, 3, 3})));
  EXPECT_FALSE(is_rewritten(conv_lines(kLarge, "f32[64, 64, 1, 3]", kLarge, "pads = [0, 1, 0, 1]"),
                            zeros(DType::kFloat32, {64, 64, 1, 3})));
  EXPECT_FALSE(
      is_rewritten(conv_lines("f64[1, 64, 56, 56]", "f64[64, 64, 3, 3]", "f64[1, 64, 56, 56]"),
                   zeros(DType::kFloat64, {64, 64, 3, 3})));
}

// Weights that only the run knows are transformed there, which takes images enough.
TEST(UseWinograd, WeightsKnownAtTheRun) {
  const auto form = [](int64_t images, int64_t channels, int64_t extent) {
    const std::string n = std::to_string(images), c = std::to_string(channels),
                      e = std::to_string(extent),
                      x = "f32[" + n + ", " + c + ", " + e + ", " + e + "]";
    const ir::Graph g = use_winograd(
        parsed_graph("  input x: " + x + "\n  input w: f32[" + c + ", " + c + ", 3, 3]\n  y: " + x +
                     " = conv(x, w) {pads = [1, 1, 1, 1]}\n  output y as \"y\"\n"),
        {});
    EXPECT_TRUE(ir::verify(g).ok());
    return g.nodes.back().op->name;
  };
  EXPECT_EQ(form(8, 64, 56), "winograd_conv");
  EXPECT_EQ(form(8, 256, 14), "winograd_conv");
  EXPECT_EQ(form(1, 256, 7), "conv");
  // Small networks are trained with plain sums.
  EXPECT_EQ(form(64, 32, 14), "conv");
}

TEST(UseWinograd, GradientsOfWeights) {
  const auto form = [](int64_t images, int64_t channels, int64_t extent, const char* pads) {
    const std::string n = std::to_string(images), c = std::to_string(channels),
                      e = std::to_string(extent),
                      x = "f32[" + n + ", " + c + ", " + e + ", " + e + "]";
    ir::Graph g = use_winograd(
        parsed_graph("  input dy: " + x + "\n  input x: " + x + "\n  dw: f32[" + c + ", " + c +
                     ", 3, 3] = conv_weights_gradient(dy, x) {kernel_shape = [3, 3], pads = " +
                     pads + "}\n  output dw as \"dw\"\n"),
        {});
    EXPECT_TRUE(ir::verify(g).ok());
    return g;
  };
  const ir::Graph g = form(8, 64, 56, "[0, 2, 2, 0]");
  ASSERT_EQ(g.nodes.back().op->name, "winograd_weights_gradient");
  EXPECT_EQ(ir::NodeView(g, g.nodes.back()).attr_ints("pads"), (std::vector<int64_t>{0, 2, 2, 0}));
  EXPECT_EQ(form(1, 256, 4, "[1, 1, 1, 1]").nodes.back().op->name, "conv_weights_gradient");
  EXPECT_EQ(form(64, 32, 14, "[1, 1, 1, 1]").nodes.back().op->name, "conv_weights_gradient");
}

TEST(UseWinograd, SmallLayersStay) {
  EXPECT_FALSE(is_rewritten(conv_lines("f32[1, 3, 8, 8]", "f32[4, 3, 3, 3]", "f32[1, 4, 8, 8]"),
                            zeros(DType::kFloat32, {4, 3, 3, 3})));
}

TEST(UseWinograd, NotWhenResultsAreToBeExact) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kStandard}) {
    LowerOptions options;
    options.numerics = numerics;
    options.run_constants = [](const ir::Graph& g) -> Result<std::vector<ir::ConstantRef>> {
      std::vector<ir::ConstantRef> made;
      for (ir::ValueId v : g.outputs)
        made.push_back(zeros(DType::kFloat32, *constant_shape(g.value(v).type)));
      return made;
    };
    auto g = lower_graph(parsed_graph(conv_lines(kLarge, "f32[64, 64, 3, 3]", kLarge), {kWeights}),
                         options);
    ASSERT_TRUE(g.ok()) << g.error().to_string();
    int direct = 0, winograd = 0;
    for (const ir::Node& n : g->nodes) {
      direct += n.op->name == "conv";
      winograd += n.op->name == "winograd_conv";
    }
    EXPECT_EQ(direct, numerics == Numerics::kExact ? 1 : 0) << ir::to_text(*g);
    EXPECT_EQ(winograd, numerics == Numerics::kExact ? 0 : 1) << ir::to_text(*g);
  }
}

// The tile of the form that is faster; 0: the direct one is.
int64_t tile_of(const ir::MachineDescription& machine, const WindowedProduct& p) {
  return windowed_forms(machine, p).usual;
}

TEST(WinogradCost, PlansHoldWholeBlocksAndPanels) {
  for (int64_t extent : {1, 4, 7, 13, 28, 56, 113})
    for (int64_t channels : {1, 16, 48, 100, 512}) {
      ir::MachineDescription machine;
      machine.threads = 3;
      const WindowedProduct p{1, channels, channels, extent, extent};
      for (const int64_t m : {2, 4}) {
        const WinogradPlan plan = plan_winograd(machine, p, m);
        EXPECT_EQ(p.tiles_down(plan.m) % plan.down, 0);
        const int64_t width = plan.tile.best.vectors * plan.lanes,
                      panels = (channels + width - 1) / width;
        EXPECT_EQ(panels % plan.panels, 0);
        EXPECT_GT(plan.cost.products, 0);
        EXPECT_GE(plan.cost.weights, 0);
      }
    }
}

// A pass over weights that no near cache holds serves the tiles of several images; where an image has many, of one.
TEST(WinogradCost, ImagesWithFewTilesShareWeights) {
  ir::MachineDescription machine;
  machine.l2_bytes = int64_t{2} << 20;
  for (const int64_t images : {6, 16}) {
    const WinogradPlan few = plan_winograd(machine, {images, 512, 512, 7, 7}, 4);
    EXPECT_GT(few.images, 1);
    EXPECT_EQ(images % few.images, 0);
    EXPECT_EQ(plan_winograd(machine, {images, 64, 64, 56, 56}, 4).images, 1);
  }
  EXPECT_EQ(7 % plan_winograd(machine, {7, 512, 512, 7, 7}, 4).images, 0);
}

// Results are rounded alike on any number of threads, and variants for other numbers of images
// share their packed weights.
TEST(WinogradCost, ThreadsAndImagesHaveNoSay) {
  for (int64_t channels : {32, 64, 128, 256, 512})
    for (int64_t extent : {7, 14, 28, 56}) {
      ir::MachineDescription machine;
      const WindowedProduct p{1, channels, channels, extent, extent},
          many{10, channels, channels, extent, extent};
      for (int64_t m : {2, 4}) {
        const WinogradPlan plan = plan_winograd(machine, p, m),
                           of_many = plan_winograd(machine, many, m);
        EXPECT_EQ(plan.down, of_many.down);
        EXPECT_EQ(plan.tile.best.vectors, of_many.tile.best.vectors);
      }
      const int64_t tile = tile_of(machine, p);
      machine.threads = 8;
      EXPECT_EQ(tile_of(machine, p), tile);
    }
}

TEST(WinogradCost, UnknownSizesSuitSmallImagesToo) {
  const ir::MachineDescription machine;
  const ir::Var h("h"), w("w");
  const WindowedProduct p{1, 64, 64, 0, 0};
  const AssumedProduct half = assume(p, floordiv(h + 1, 2), floordiv(w + 1, 2));
  EXPECT_EQ(half.usual.height, 128);
  EXPECT_EQ(half.small.width, 32);
  const WindowedForms forms = windowed_forms(machine, half);
  ASSERT_NE(forms.usual, WindowedForms::kDirect);
  const WinogradPlan &plan = forms.plan(forms.usual),
                     again = plan_blocks(machine, half, forms.usual);
  EXPECT_EQ(std::pair(plan.down, plan.across), std::pair(again.down, again.across));
  EXPECT_LT(plan_winograd(machine, half.usual, plan.m).cost.total(), forms.direct.total());
  // A result of small images would be one tile, most of it cut off.
  EXPECT_EQ(windowed_forms(machine, assume(p, floordiv(h, 64), floordiv(w, 64))).usual,
            WindowedForms::kDirect);
}
// Convolutions of images of any size take the form, in blocks.
TEST(UseWinograd, SymbolicSizes) {
  const std::vector<ir::ConstantRef> weights{ir::make_constant_of<float>(
      DType::kFloat32, {64, 64, 3, 3}, std::vector<float>(64 * 64 * 9, 0.5f))};
  const ir::Graph g = use_winograd(parsed_graph(R"(  input x: f32[n, 64, h, w]
  const k: f32[64, 64, 3, 3] = #0
  y: f32[n, 64, h, w] = conv(x, k) {pads = [1, 1, 1, 1]}
  output y as "y"
)",
                                                weights),
                                   ir::MachineDescription{});
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.nodes[1].op->name, "winograd_conv");
  EXPECT_TRUE(is_rewritten(
      conv_lines("f32[1, 64, h, 56]", "f32[64, 64, 3, 3]", "f32[1, 64, h, 56]"), kWeights));
}

TEST(WinogradCost, KernelsSayWhatBothFormsCost) {
  const ir::MachineDescription machine;
  for (const std::string form : {"conv", "winograd_conv"}) {
    const std::string w = form == "conv" ? "f32[8, 5, 3, 3]" : "f32[6, 6, 5, 8]";
    const ir::Graph g = parsed_graph("  input x: f32[n, 5, 9, 11]\n  input w: " + w +
                                     "\n  y: f32[n, 8, 9, 11] = " + form +
                                     "(x, w) {pads = [1, 1, 1, 1]}\n  output y as \"y\"\n");
    const ir::Kernel kernel = build_group_kernel(g, {0}, g.use_counts()).kernel;
    auto choice = choose_trace(
        kernel, {.machine = &machine, .constants = {"in1"}, .answers = {}, .explain = true});
    ASSERT_TRUE(choice.ok()) << choice.error().to_string();
    std::string text;
    for (const std::string& n : choice->notes) text += n + "\n";
    for (const char* phrase : {"direct: ", "F(2x2, 3x3): ", "F(4x4, 3x3): "})
      EXPECT_NE(text.find(phrase), std::string::npos) << form << ": " << text;
  }
}

TEST(WinogradCost, TransformsOfWeightsCount) {
  const ir::MachineDescription machine;
  WindowedProduct p{.in_channels = 64, .out_channels = 64, .height = 56, .width = 56};
  const WinogradCost of_constants = plan_winograd(machine, p, 4).cost;
  p.transforms_weights = true;
  const WinogradCost at_run = plan_winograd(machine, p, 4).cost;
  EXPECT_EQ(of_constants.transform, 0);
  EXPECT_GT(at_run.transform, 0);
  EXPECT_DOUBLE_EQ(at_run.total(), of_constants.total() + at_run.transform);
}

TEST(WinogradCost, WeightsOutweighFewTiles) {
  const ir::MachineDescription machine;
  EXPECT_EQ(tile_of(machine, {1, 64, 64, 56, 56}), 4);
  EXPECT_EQ(tile_of(machine, {1, 128, 128, 28, 28}), 4);
  EXPECT_NE(tile_of(machine, {1, 512, 512, 7, 7}), 4);
  EXPECT_EQ(tile_of(machine, {1, 64, 64, 3, 3}), 0);
}

}  // namespace
}  // namespace tilewright::passes
