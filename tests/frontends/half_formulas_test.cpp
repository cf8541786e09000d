// Operators that are opened into formulas compute halves in f32 and round once: one node in f16 and
// in bf16 against the same node in f64, on the same operands.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

using Ints = std::vector<int64_t>;

// Floats of a shape; else integers that the model has as a constant; else left out.
struct Given {
  std::optional<Shape> shape;
  Ints constant;
  bool is_scalar = false;
};
Operand constant_of(const Given& g) {
  if (g.constant.empty()) return {};
  const auto n = static_cast<int64_t>(g.constant.size());
  return {tensor_of(DType::kInt64, g.is_scalar ? Shape{} : Shape{n},
                    {g.constant.begin(), g.constant.end()}),
          true};
}
Given floats(Shape s) { return {std::move(s), {}}; }
Given integers(Ints v) { return {std::nullopt, std::move(v)}; }
Given integer(int64_t v) { return {std::nullopt, {v}, true}; }

// A node whose results in halves must be those in f64, rounded. Ranges are chosen where computing
// in halves would overflow (sums near 65504) or lose what is left (tails of activations).
struct Case {
  const char* op;
  std::vector<Given> operands;
  NodeAttributes attributes = {};
  double low = -4, high = 4;  // of the operands
  int outputs = 1;
  const char* domain = "";
  const char* label = "";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.op << c.label; }

const Shape kRow{64}, kImage{2, 3, 6, 6}, kSequence{5, 2, 6};
const Case kCases[] = {
    {"LeakyRelu", {floats(kRow)}, {{"alpha", 0.013}}},
    {"ThresholdedRelu", {floats(kRow)}, {{"alpha", 1.003}}},
    {"Elu", {floats(kRow)}, {{"alpha", 1.3}}},
    {"Celu", {floats(kRow)}, {{"alpha", 0.7}}},
    {"Selu", {floats(kRow)}},
    {"HardSigmoid", {floats(kRow)}},
    {"HardSwish", {floats(kRow)}},
    {"Softplus", {floats(kRow)}},
    {"Softplus", {floats(kRow)}, {}, -16, -8, 1, "", "Tail"},
    {"Softsign", {floats(kRow)}},
    {"Mish", {floats(kRow)}},
    {"Mish", {floats(kRow)}, {}, -16, -8, 1, "", "Tail"},
    {"Swish", {floats(kRow)}, {{"alpha", 1.1}}},
    {"Gelu", {floats(kRow)}},
    {"Gelu", {floats(kRow)}, {{"approximate", "tanh"}}, -4, 4, 1, "", "Tanh"},
    {"Shrink", {floats(kRow)}, {{"bias", 0.13}, {"lambd", 0.7}}},
    {"FastGelu", {floats(kRow), floats(kRow)}, {}, -4, 4, 1, "com.microsoft"},
    {"BiasGelu", {floats(kRow), floats(kRow)}, {}, -4, 4, 1, "com.microsoft"},
    {"QuickGelu", {floats(kRow)}, {}, -4, 4, 1, "com.microsoft"},
    {"Sum", {floats(kRow), floats(kRow), floats(kRow)}},
    {"Sum", {floats(kRow), floats(kRow), floats(kRow)}, {}, 2e4, 2.1e4, 1, "", "Large"},
    {"Mean", {floats(kRow), floats(kRow), floats(kRow)}, {}, 3e4, 6e4},
    {"Mod", {floats(kRow), floats(kRow)}, {{"fmod", 1}}},
    {"Pow", {floats(kRow), floats(kRow)}, {}, 0.5, 3},
    {"ReduceL2", {floats({4, 9}), integers({1})}, {}, 190, 210},
    {"ReduceSumSquare", {floats({4, 9}), integers({1})}},
    {"ReduceLogSum", {floats({4, 9}), integers({1})}, {}, 2e4, 3e4},
    {"ReduceLogSumExp", {floats({4, 9}), integers({1})}},
    {"ReduceL1", {floats({4, 9}), integers({1})}},
    {"LpPool", {floats(kImage)}, {{"kernel_shape", Ints{3, 3}}}, 190, 210},
    {"LpPool", {floats(kImage)}, {{"kernel_shape", Ints{3, 3}}, {"p", 3}}, 20, 60, 1, "", "Cubes"},
    {"GlobalLpPool", {floats({2, 3, 3, 3})}, {}, 190, 210},
    {"AveragePool", {floats(kImage)}, {{"kernel_shape", Ints{3, 3}}}, 4e4, 6e4},
    {"LRN", {floats(kImage)}, {{"size", 3}, {"alpha", 0.3}}, 190, 410},
    {"LpNormalization", {floats({4, 9})}, {}, 190, 410},
    {"MeanVarianceNormalization", {floats(kImage)}},
    {"LayerNormalization", {floats({4, 32}), floats({32}), floats({32})}},
    {"RMSNormalization", {floats({4, 32}), floats({32})}},
    {"GroupNormalization", {floats({2, 4, 8}), floats({4}), floats({4})}, {{"num_groups", 2}}},
    {"InstanceNormalization", {floats({2, 4, 8}), floats({4}), floats({4})}},
    {"BatchNormalization",
     {floats(kImage), floats({3}), floats({3}), floats({3}), floats({3})},
     {},
     0.1,
     3},
    {"BatchNormalization",
     {floats(kImage), floats({3}), floats({3}), floats({3}), floats({3})},
     {{"training_mode", 1}},
     0.1,
     3,
     3,
     "",
     "Training"},
    {"NegativeLogLikelihoodLoss",
     {floats({4, 5}), integers({1, 0, 4, 2}), floats({5})},
     {},
     0.1,
     3},
    {"SoftmaxCrossEntropyLoss", {floats({4, 5}), integers({1, 0, 4, 2})}, {}, -4, 4, 2},
    {"LogSoftmax", {floats({4, 17})}},
    {"Softmax", {floats({4, 17})}},
    {"Conv", {floats(kImage), floats({4, 3, 3, 3}), floats({4})}},
    {"ConvTranspose",
     {floats(kImage), floats({3, 2, 3, 3}), floats({2})},
     {{"strides", Ints{2, 2}}}},
    {"DeformConv", {floats({1, 2, 5, 5}), floats({2, 2, 2, 2}), floats({1, 8, 4, 4}), floats({2})}},
    {"Gemm", {floats({5, 19}), floats({19, 7}), floats({7})}, {{"alpha", 0.37}, {"beta", 1.7}}},
    {"Einsum", {floats({4, 5}), floats({5, 6}), floats({6, 7})}, {{"equation", "ab,bc,cd->ad"}}},
    {"Einsum",
     {floats({4, 5}), floats({5, 6})},
     {{"equation", "ab,bc->c"}},
     -4,
     4,
     1,
     "",
     "Summed"},
    {"RNN",
     {floats(kSequence), floats({1, 4, 6}), floats({1, 4, 4}), floats({1, 8})},
     {{"hidden_size", 4}},
     -1,
     1,
     2},
    {"GRU",
     {floats(kSequence), floats({1, 12, 6}), floats({1, 12, 4}), floats({1, 24})},
     {{"hidden_size", 4}, {"linear_before_reset", 1}},
     -1,
     1,
     2},
    {"LSTM",
     {floats(kSequence), floats({1, 16, 6}), floats({1, 16, 4}), floats({1, 32})},
     {{"hidden_size", 4}},
     -1,
     1,
     3},
    {"Attention",
     {floats({1, 2, 5, 8}), floats({1, 2, 7, 8}), floats({1, 2, 7, 8}), floats({5, 7})},
     {{"softcap", 3.0}}},
    {"RotaryEmbedding", {floats({1, 2, 4, 8}), floats({1, 4, 4}), floats({1, 4, 4})}},
    {"DFT", {floats({2, 9, 2})}},
    {"STFT", {floats({1, 32, 1}), integer(4), floats({8})}},
    {"Resize",
     {floats({1, 1, 5, 5}), {}, {}, integers({1, 1, 8, 7})},
     {{"mode", "linear"}},
     4e4,
     6e4},
    {"CumSum", {floats({4, 9}), integers({1})}},
    {"Det", {floats({3, 5, 5})}},
    {"AffineGrid", {floats({2, 2, 3}), integers({2, 1, 5, 6})}},
    {"GridSample", {floats({1, 2, 5, 5}), floats({1, 4, 4, 2})}, {}, -1, 1},
};

class HalfFormulas : public testing::TestWithParam<Case> {
 protected:
  void check(DType half) {
    const Case& c = GetParam();
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> uniform(c.low, c.high);
    std::vector<Operand> narrow, wide;
    double largest = 0;
    for (const Given& g : c.operands) {
      if (!g.shape) {
        narrow.push_back(constant_of(g));
        wide.push_back(narrow.back());
        continue;
      }
      std::vector<double> values;
      for (int64_t n = *element_count(*g.shape); n > 0; --n) values.push_back(uniform(random));
      narrow.push_back({tensor_of(half, *g.shape, values)});
      const std::vector<double> rounded = numbers_of(narrow.back().tensor);
      for (const double v : rounded) largest = std::max(largest, std::abs(v));
      wide.push_back({tensor_of(DType::kFloat64, *g.shape, rounded)});
    }
    const std::vector<Tensor> found = run(narrow), expected = run(wide);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t k = 0; k < found.size(); ++k) {
      ASSERT_EQ(found[k].dtype(), half);
      ASSERT_EQ(found[k].shape(), expected[k].shape());
      const std::vector<double> f = numbers_of(found[k]), e = numbers_of(expected[k]);
      for (size_t i = 0; i < f.size(); ++i) expect_rounded_once(f[i], e[i], largest, half);
    }
  }
  std::vector<Tensor> run(const std::vector<Operand>& operands) {
    const Case& c = GetParam();
    return run_node(c.op, operands, c.attributes, 24, c.outputs, c.domain);
  }
  // Half a unit in the last place, and what sums in f32 of operands of this size lose.
  static void expect_rounded_once(double found, double expected, double largest, DType half) {
    const bool f16 = half == DType::kFloat16;
    const int digits = f16 ? 11 : 8, lowest = f16 ? -14 : -126;
    const int exponent = expected == 0 ? lowest : std::max(std::ilogb(expected), lowest);
    const double unit = std::ldexp(1, exponent + 1 - digits);
    const double sums =
        std::ldexp(4 * std::min(largest, 16.0) * std::max(1.0, std::abs(expected)), -24);
    EXPECT_LE(std::abs(found - expected), 0.505 * unit + sums) << found << " for " << expected;
  }
};

TEST_P(HalfFormulas, RoundOnce) {
  check(DType::kFloat16);
  check(DType::kBFloat16);
}

INSTANTIATE_TEST_SUITE_P(Ops, HalfFormulas, testing::ValuesIn(kCases), [](const auto& info) {
  return std::string(info.param.op) + info.param.label + "_" + std::to_string(info.index);
});

}  // namespace
}  // namespace tilewright
