// Operators that the reader makes formulas of, against the same in double precision: a wrong digit
// of a constant shows at 1e-6.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

struct Formula {
  const char* name;
  const char* op;
  std::function<double(double)> f;
  NodeAttributes attributes = {};
  const char* domain = "";
};
void PrintTo(const Formula& f, std::ostream* out) { *out << f.name; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double limited(double x) { return std::min(std::max(x, 0.0), 1.0); }
double erf_gelu(double x) { return x * 0.5 * (1 + std::erf(x * 0.70710678118654752)); }
double tanh_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
double softplus(double x) { return std::log1p(std::exp(x)); }
double elu(double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all{
      {"Gelu", "Gelu", erf_gelu},
      {"GeluByTanh", "Gelu", tanh_gelu, {{"approximate", "tanh"}}},
      {"MicrosoftGelu", "Gelu", erf_gelu, {}, "com.microsoft"},
      {"FastGelu", "FastGelu", tanh_gelu, {}, "com.microsoft"},
      {"QuickGelu",
       "QuickGelu",
       [](double x) { return x * sigmoid(1.702 * x); },
       {},
       "com.microsoft"},
      {"Selu", "Selu",
       [](double x) { return 1.05070102214813232421875 * elu(x, 1.67326319217681884765625); }},
      {"SeluOf",
       "Selu",
       [](double x) { return 0.7 * elu(x, 1.9); },
       {{"alpha", 1.9}, {"gamma", 0.7}}},
      {"Elu", "Elu", [](double x) { return elu(x, 1); }},
      {"EluOf", "Elu", [](double x) { return elu(x, 0.3); }, {{"alpha", 0.3}}},
      {"Celu", "Celu", [](double x) { return elu(x, 1); }},
      {"CeluOf",
       "Celu",
       [](double x) { return x < 0 ? 2.5 * std::expm1(x / 2.5) : x; },
       {{"alpha", 2.5}}},
      {"LeakyRelu", "LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"ThresholdedRelu", "ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
      {"HardSigmoid", "HardSigmoid", [](double x) { return limited(0.2 * x + 0.5); }},
      {"HardSigmoidOf",
       "HardSigmoid",
       [](double x) { return limited(0.3 * x + 0.4); },
       {{"alpha", 0.3}, {"beta", 0.4}}},
      {"HardSwish", "HardSwish", [](double x) { return x * limited(x / 6 + 0.5); }},
      {"Softplus", "Softplus", softplus},
      {"Softsign", "Softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"Mish", "Mish", [](double x) { return x * std::tanh(softplus(x)); }},
      {"Swish", "Swish", [](double x) { return x * sigmoid(x); }},
      {"SwishOf", "Swish", [](double x) { return x * sigmoid(1.3 * x); }, {{"alpha", 1.3}}},
      {"Shrink", "Shrink", [](double x) { return x < -0.5 || x > 0.5 ? x : 0; }},
      {"ShrinkOf",
       "Shrink",
       [](double x) { return x < -0.8  ? x + 0.3
                             : x > 0.8 ? x - 0.3
                                       : 0; },
       {{"bias", 0.3}, {"lambd", 0.8}}},
      {"Sigmoid", "Sigmoid", sigmoid},
      {"Tanh", "Tanh", [](double x) { return std::tanh(x); }},
      {"Erf", "Erf", [](double x) { return std::erf(x); }},
      {"Reciprocal", "Reciprocal", [](double x) { return 1 / x; }},
  };
  return all;
}

// What a node of f32 gives for x and more operands.
std::vector<double> run(const std::string& op, const Tensor& x, const NodeAttributes& attributes,
                        const char* domain = "", const std::vector<Operand>& more = {}) {
  std::vector<Operand> operands{{x}};
  operands.insert(operands.end(), more.begin(), more.end());
  const std::vector<Tensor> y = run_node(op, operands, attributes, 24, 1, domain);
  return y.empty() ? std::vector<double>{} : numbers_of(y[0]);
}
constexpr double kTolerance = 1e-6;  // a few roundings of f32, less than any fifth digit
void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], kTolerance * std::max(std::abs(expected[i]), 0.5)) << i;
}

class Formulas : public testing::TestWithParam<Formula> {};

TEST_P(Formulas, HoldToSixDigits) {
  const Formula& formula = GetParam();
  std::vector<double> x;
  for (int i = -40; i <= 40; ++i)
    if (i != 0) x.push_back(i * 0.0731);  // one has a pole at 0
  const Tensor operand = tensor_of(DType::kFloat32, {static_cast<int64_t>(x.size())}, x);
  std::vector<double> expected;
  for (const double v : numbers_of(operand)) expected.push_back(formula.f(v));
  expect_near(run(formula.op, operand, formula.attributes, formula.domain), expected);
}

INSTANTIATE_TEST_SUITE_P(All, Formulas, testing::ValuesIn(formulas()),
                         [](const auto& info) { return std::string(info.param.name); });

// Few channels of large elements: alpha, bias and epsilon count as much as they do.
const Shape kImage{1, 5, 1, 3};
Tensor image(double scale) {
  std::vector<double> x;
  for (int i = 0; i < 15; ++i) x.push_back(scale * (i * 7 % 15 - 6.3));
  return tensor_of(DType::kFloat32, kImage, x);
}

TEST(Constants, OfLocalResponseNormalization) {
  for (const bool given : {false, true}) {
    const double alpha = given ? 0.03 : 1e-4, beta = given ? 0.6 : 0.75, bias = given ? 1.7 : 1;
    const int64_t size = given ? 4 : 3;  // of an even number, more lie behind
    NodeAttributes attributes{{"size", size}};
    if (given) attributes.insert({{"alpha", alpha}, {"beta", beta}, {"bias", bias}});
    const Tensor operand = image(30);
    const std::vector<double> x = numbers_of(operand);
    std::vector<double> expected;
    for (int c = 0; c < 5; ++c)
      for (int i = 0; i < 3; ++i) {
        double squares = 0;
        for (int64_t k = std::max(c - 1, 0); k <= std::min<int64_t>(c + size / 2, 4); ++k)
          squares += std::pow(x[static_cast<size_t>(3 * k + i)], 2);
        expected.push_back(x[static_cast<size_t>(3 * c + i)] /
                           std::pow(bias + alpha / static_cast<double>(size) * squares, beta));
      }
    expect_near(run("LRN", operand, attributes), expected);
  }
}

// By default 1e-5, which is half of this variance.
TEST(Constants, EpsilonsOfNormalizations) {
  for (const char* op : {"InstanceNormalization", "LayerNormalization", "RMSNormalization"}) {
    SCOPED_TRACE(op);
    const std::string name = op;
    const bool of_image = name == "InstanceNormalization", centred = name != "RMSNormalization";
    const Shape shape = of_image ? Shape{1, 1, 8} : Shape{1, 8};
    const std::vector<double> x{0.001, -0.002, 0.003, 0.0005, -0.004, 0.002, 0.001, -0.001};
    const Shape channels{of_image ? 1 : 8};
    std::vector<Operand> more;
    more.push_back({tensor_of(DType::kFloat32, channels, {1}), true});
    if (centred) more.push_back({tensor_of(DType::kFloat32, channels, {0}), true});
    double mean = 0, squares = 0;
    for (const double v : x) mean += centred ? v / 8 : 0;
    for (const double v : x) squares += (v - mean) * (v - mean) / 8;
    std::vector<double> expected;
    for (const double v : x) expected.push_back((v - mean) / std::sqrt(squares + 1e-5));
    expect_near(run(op, tensor_of(DType::kFloat32, shape, x), {}, "", more), expected);
  }
}

}  // namespace
}  // namespace tilewright
