// Convolutions in training: weights that only the run knows lie in panels, and so do both operands of the gradient
// of the weights, where there are enough of them. Strides, windows, dimensions, and channels left over.
#include <gtest/gtest.h>

#include "ir/text/printer_loops.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

struct Case {
  Shape x, w;
  std::vector<int64_t> strides, pads, dilations;
  bool in_panels = true;
  int64_t group = 1;
};

class RunConvolutions : public KernelTest {
 protected:
  // Doubles once: their vectors are half as long, the rest is the same.
  static std::vector<DType> types_of(const Case& c) {
    if (c.strides.size() == 1) return {DType::kFloat32, DType::kFloat64};
    return {DType::kFloat32};
  }
  static ir::Attributes attributes(const Case& c) {
    return {
        {"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
  }
};

const Case kCases[] = {
    {{2, 37, 9, 11}, {131, 37, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {{2, 130, 13, 8}, {67, 130, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {{2, 48, 13, 9}, {131, 48, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
    {{3, 8, 12, 13}, {50, 8, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
    {{1, 20, 24, 10}, {83, 20, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
    {{4, 6, 56, 40}, {18, 6, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
    {{3, 129, 13, 14}, {96, 129, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    {{2, 33, 17, 15}, {80, 33, 3, 2}, {2, 1}, {0, 1, 2, 1}, {1, 2}},
    {{2, 70, 211}, {64, 70, 3}, {1}, {2, 0}, {1}},
    {{1, 64, 7, 6, 5}, {71, 64, 2, 1, 3}, {1, 1, 1}, {0, 0, 1, 1, 0, 1}, {1, 1, 1}},
    {{2, 48, 10, 9}, {36, 8, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, false, 6},
    {{2, 24, 12, 9}, {24, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, false, 24},
    {{2, 35, 11, 9}, {7, 35, 3, 2}, {1, 1}, {1, 0, 1, 1}, {1, 1}, false},
};

TEST_P(RunConvolutions, WithWeightsInPanels) {
  for (const Case& c : kCases)
    for (const DType t : types_of(c)) {
      SCOPED_TRACE(testing::Message() << c.w[0] << " of " << c.w[1] << " channels, " << name(t));
      GraphCall call;
      const auto x = call.op("relu", {call.input(random(t, c.x))});
      call.output(call.op("conv", {x, call.input(random(t, c.w))}, attributes(c)));
      expect_equal(call, static_cast<double>(*element_count(c.w) / c.w[0]),
                   {{}, {.small_caches = true}});
      if (HasFailure()) return;
      EXPECT_EQ(count_decided(call, "by_panels"), c.in_panels ? 1u : 0u);
    }
}

// Rows of images that fill no vectors are cut anew where no window moves over them, with all that is made of them.
TEST_P(RunConvolutions, OfRowsThatRunOn) {
  struct Rows {
    Shape x, w;
  };
  for (const Rows& c : {Rows{{2, 16, 28, 28}, {16, 16, 1, 1}}, Rows{{1, 5, 12, 12}, {7, 5, 1, 1}},
                        Rows{{3, 8, 24, 6}, {4, 8, 1, 1}}, Rows{{2, 4, 2, 16, 9}, {3, 4, 1, 1, 1}},
                        Rows{{2, 5, 16, 1}, {3, 5, 1, 1}}, Rows{{1, 6, 13, 11}, {5, 6, 1, 1}},
                        Rows{{1, 6, 12, 12}, {5, 6, 3, 1}}})
    for (const bool kept : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.x.back() << " columns, " << kept);
      GraphCall call;
      const auto x = call.input(random(DType::kFloat32, c.x)),
                 w = call.input(random(DType::kFloat32, c.w)),
                 y = call.op("conv", {x, w}, {{"pads", Shape(2 * (c.x.size() - 2), 0)}});
      Shape of_result = c.x, of_bias(c.x.size(), 1);
      of_result[1] = of_bias[1] = c.w[0];
      of_result[2] -= c.w[2] - 1;
      const auto sum =
          call.op("add", {call.op("add", {y, call.input(random(DType::kFloat32, of_bias))}),
                          call.input(random(DType::kFloat32, of_result))});
      call.output(call.op("relu", {sum}));
      if (kept) call.output(call.op("tanh", {sum}));
      expect_equal(call, static_cast<double>(c.w[1] * c.w[2] + 2), {{}, {.small_caches = true}});
      if (HasFailure()) return;
    }
}

TEST_P(RunConvolutions, GradientsOfWeights) {
  for (const Case& c : kCases)
    for (const DType t : types_of(c)) {
      SCOPED_TRACE(testing::Message() << c.w[0] << " of " << c.w[1] << " channels, " << name(t));
      GraphCall call;
      const auto x = call.op("relu", {call.input(random(t, c.x))}), w = call.input(random(t, c.w)),
                 y = call.op("conv", {x, w}, attributes(c));
      const auto dy = call.op("sin", {y});
      ir::Attributes of_gradient = attributes(c);
      of_gradient["kernel_shape"] = std::vector<int64_t>(c.w.begin() + 2, c.w.end());
      call.output(y);
      call.output(call.op("conv_weights_gradient", {dy, x}, std::move(of_gradient)));
      const double pixels = static_cast<double>(*element_count(c.x) / c.x[1]);
      expect_equal(call, pixels + static_cast<double>(*element_count(c.w) / c.w[0]),
                   {{}, {.small_caches = true}});
      if (HasFailure()) return;
    }
}

// Blocks of terms, also over several lines of pixels: the last tile of columns is part of a vector, or lacks whole
// ones, beside tiles of rows with some left over; few results' channels, sums that no stack takes, and pixels a power
// of two apart, whose columns are copied block by block.
TEST_P(RunConvolutions, GradientsOfWeightsOfManyPixels) {
  struct Layer {
    int64_t outs, ins, images, side;
  };
  for (const Layer& c : {Layer{85, 40, 5, 14}, Layer{20, 83, 5, 14}, Layer{115, 112, 5, 14},
                         Layer{256, 21, 2, 28}}) {
    SCOPED_TRACE(testing::Message() << c.outs << " of " << c.ins << " channels");
    GraphCall call;
    const auto image_of = [&](const char* op, int64_t channels) {
      return call.op(op,
                     {call.input(random(DType::kFloat32, {c.images, channels, c.side, c.side}))});
    };
    const auto dy = image_of("sin", c.outs), x = image_of("relu", c.ins);
    call.output(
        call.op("conv_weights_gradient", {dy, x}, {{"kernel_shape", std::vector<int64_t>{1, 1}}}));
    expect_equal(call, static_cast<double>(c.images * c.side * c.side),
                 {{}, {.small_caches = true}});
    if (HasFailure()) return;
  }
}

// Sums of runs, of one place and of windows, that no cache holds, and rows that come from beyond the second one: for
// all panels of columns, for two, or for groups of these around all images.
TEST_P(RunConvolutions, GradientsOfWhatNoCacheHolds) {
  struct Layer {
    int64_t outs, ins, images, side, kernel, stride;
  };
  for (const Layer& c : {Layer{20, 83, 16, 14, 1, 1}, Layer{197, 131, 2, 9, 1, 1},
                         Layer{35, 70, 8, 11, 3, 2}, Layer{40, 256, 13, 8, 2, 1}}) {
    SCOPED_TRACE(testing::Message() << c.outs << " of " << c.ins << " channels");
    GraphCall call;
    const ir::Attributes strides{{"strides", std::vector<int64_t>(2, c.stride)}};
    ir::Attributes of_gradient = strides;
    of_gradient["kernel_shape"] = std::vector<int64_t>(2, c.kernel);
    const int64_t out = (c.side - c.kernel) / c.stride + 1;
    const auto dy =
        call.op("sin", {call.input(random(DType::kFloat32, {c.images, c.outs, out, out}))});
    const auto x =
        call.op("relu", {call.input(random(DType::kFloat32, {c.images, c.ins, c.side, c.side}))});
    call.output(call.op("conv_weights_gradient", {dy, x}, std::move(of_gradient)));
    const auto w = call.input(random(DType::kFloat32, {c.outs, c.ins, c.kernel, c.kernel}));
    call.output(call.op("relu", {call.op("conv_transpose", {dy, w}, strides)}));
    expect_equal(call, static_cast<double>(c.images * out * out + c.outs * c.kernel * c.kernel),
                 {{.l2_bytes = 20 << 10}, {.l2_bytes = 72 << 10}, {.l2_bytes = 200 << 10}});
    if (HasFailure()) return;
  }
}

// Results of few terms are stored past the caches where tiles fill whole lines, also with some rows and columns left.
TEST_P(RunConvolutions, OfFewTermsAndLargeResults) {
  for (const int64_t side : {16, 13})
    for (const int64_t outs : {48, 37}) {
      SCOPED_TRACE(testing::Message() << outs << " channels of " << side << " columns");
      GraphCall call;
      const auto x = call.input(random(DType::kFloat32, {2, 5, side, side})),
                 w = call.input(random(DType::kFloat32, {outs, 5, 1, 1}));
      call.output(call.op("relu", {call.op("conv", {x, w})}));
      CompiledForm small{.l2_bytes = 4 << 10};
      expect_equal(call, 5, {small, {.small_caches = true}});
      if (HasFailure()) return;
      small.cpu = GetParam();
      const auto program = lower_graph_for(call.graph, small);
      ASSERT_TRUE(program.ok());
      const auto streams = [](const ir::Kernel& k) {
        return ir::to_text(k).find(" streamed") != std::string::npos;
      };
      EXPECT_EQ(std::any_of(program->kernels.begin(), program->kernels.end(), streams), side == 16);
    }
}

// Weights of one element's windows as they lie, of which the second cache holds some panels, and not all.
TEST_P(RunConvolutions, GradientsOfOperandsOfPanelsThatTasksCopy) {
  struct Layer {
    int64_t ins, outs, images, side, stride;
  };
  for (const Layer& c : {Layer{768, 128, 3, 6, 2}, Layer{677, 129, 1, 11, 1}}) {
    SCOPED_TRACE(testing::Message() << c.outs << " of " << c.ins << " channels");
    GraphCall call;
    const auto dy =
        call.op("sin", {call.input(random(DType::kFloat32, {c.images, c.outs, c.side, c.side}))});
    const std::vector<int64_t> strides(2, c.stride);
    const auto dx = call.op(
        "conv_transpose", {dy, call.input(random(DType::kFloat32, {c.outs, c.ins, 1, 1}))},
        {{"strides", strides}, {"pads", std::vector<int64_t>{0, 0, 1 - c.stride, 1 - c.stride}}});
    call.output(call.op("relu", {dx}));
    expect_equal(call, static_cast<double>(c.outs),
                 {{.l2_bytes = 72 << 10}, {.l2_bytes = 256 << 10}});
    EXPECT_EQ(count_decided(call, "by_panels", {.l2_bytes = 72 << 10}), 0u);
    EXPECT_EQ(count_decided(call, "by_panels", {.l2_bytes = 1 << 20}), 1u);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, RunConvolutions, testing::Values("x86-64-v3", "native"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
