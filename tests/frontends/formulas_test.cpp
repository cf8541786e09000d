// Operators that the reader makes formulas of, against the same in double precision: a wrong digit
// of a constant shows at 1e-6.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontends/compiler/compiler.h"
#include "runtime/session.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {
namespace {

struct Formula {
  const char* name;
  const char* op;
  std::function<double(double)> f;
  std::vector<std::pair<const char*, double>> attributes = {};  // floats
  const char* domain = "";
  std::pair<const char*, const char*> text = {nullptr, nullptr};  // an attribute that is a string
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
      {"GeluByTanh", "Gelu", tanh_gelu, {}, "", {"approximate", "tanh"}},
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

void add_float(onnx_format::NodeProto* node, const std::string& name, double value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx_format::FLOAT);
  attribute->set_f(static_cast<float>(value));
}
void add_int(onnx_format::NodeProto* node, const std::string& name, int64_t value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx_format::INT);
  attribute->set_i(value);
}
// y = op(x, more...), x: f32 of this shape; no other node.
onnx_format::ModelProto model_of(const std::string& op, const std::string& domain,
                                 const Shape& shape, const Names& more = {}) {
  onnx_format::ModelProto model = small_model();
  model.mutable_opset_import(0)->set_version(24);
  model.set_ir_version(11);
  auto* microsoft = model.add_opset_import();
  microsoft->set_domain("com.microsoft");
  microsoft->set_version(1);
  auto* graph = model.mutable_graph();
  graph->clear_initializer();
  graph->clear_node();
  auto* dims = graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t d : shape) dims->add_dim()->set_dim_value(d);
  Names inputs{"x"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  add_node(graph->mutable_node(), op, inputs, {"y"}, "n", domain);
  return model;
}
std::vector<float> run(const onnx_format::ModelProto& proto, const Shape& shape,
                       const std::vector<float>& x) {
  auto model = parse(proto);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return {};
  auto executable = compile_in_memory(**model, {}, {});
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  if (!executable.ok()) return {};
  auto session = Session::create(*executable, {});
  Tensor in = Tensor::allocate(DType::kFloat32, shape).value();
  std::copy(x.begin(), x.end(), in.data_as<float>());
  std::vector<Tensor> outputs;
  const Status status = (*session)->run(std::vector{in}, outputs);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  if (!status.ok()) return {};
  return {outputs[0].data_as<float>(), outputs[0].data_as<float>() + outputs[0].element_count()};
}
constexpr double kTolerance = 1e-6;  // a few roundings of f32, less than any fifth digit
void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], kTolerance * std::max(std::abs(expected[i]), 0.5)) << i;
}

class Formulas : public testing::TestWithParam<Formula> {};

TEST_P(Formulas, HoldToSixDigits) {
  const Formula& formula = GetParam();
  std::vector<float> x;
  std::vector<double> expected;
  for (int i = -40; i <= 40; ++i) {
    if (i == 0) continue;  // one has a pole there
    x.push_back(static_cast<float>(i) * 0.0731f);
    expected.push_back(formula.f(static_cast<double>(x.back())));
  }
  const Shape shape{static_cast<int64_t>(x.size())};
  onnx_format::ModelProto model = model_of(formula.op, formula.domain, shape);
  auto* node = model.mutable_graph()->mutable_node(0);
  for (const auto& [name, value] : formula.attributes) add_float(node, name, value);
  if (formula.text.first) {
    auto* attribute = node->add_attribute();
    attribute->set_name(formula.text.first);
    attribute->set_type(onnx_format::STRING);
    attribute->set_s(formula.text.second);
  }
  expect_near(run(model, shape, x), expected);
}

INSTANTIATE_TEST_SUITE_P(All, Formulas, testing::ValuesIn(formulas()),
                         [](const auto& info) { return std::string(info.param.name); });

// Few channels of large elements: alpha, bias and epsilon count as much as they do.
const Shape kImage{1, 5, 1, 3};
std::vector<float> image(double scale) {
  std::vector<float> x;
  for (int i = 0; i < 15; ++i) x.push_back(static_cast<float>(scale * (i * 7 % 15 - 6.3)));
  return x;
}

TEST(Constants, OfLocalResponseNormalization) {
  for (const bool given : {false, true}) {
    const double alpha = given ? 0.03 : 1e-4, beta = given ? 0.6 : 0.75, bias = given ? 1.7 : 1;
    onnx_format::ModelProto model = model_of("LRN", "", kImage);
    auto* node = model.mutable_graph()->mutable_node(0);
    const int size = given ? 4 : 3;  // of an even number, more lie behind
    add_int(node, "size", size);
    if (given) {
      add_float(node, "alpha", alpha);
      add_float(node, "beta", beta);
      add_float(node, "bias", bias);
    }
    const std::vector<float> x = image(30);
    std::vector<double> expected;
    for (int c = 0; c < 5; ++c)
      for (int i = 0; i < 3; ++i) {
        double squares = 0;
        for (int k = std::max(c - 1, 0); k <= std::min(c + size / 2, 4); ++k)
          squares += std::pow(static_cast<double>(x[static_cast<size_t>(3 * k + i)]), 2);
        expected.push_back(x[static_cast<size_t>(3 * c + i)] /
                           std::pow(bias + alpha / size * squares, beta));
      }
    expect_near(run(model, kImage, x), expected);
  }
}

// By default 1e-5, which is half of this variance.
TEST(Constants, EpsilonsOfNormalizations) {
  for (const char* op : {"InstanceNormalization", "LayerNormalization", "RMSNormalization"}) {
    SCOPED_TRACE(op);
    const std::string name = op;
    const bool of_image = name == "InstanceNormalization", centred = name != "RMSNormalization";
    const Shape shape = of_image ? Shape{1, 1, 8} : Shape{1, 8};
    const std::vector<float> x{0.001f, -0.002f, 0.003f, 0.0005f, -0.004f, 0.002f, 0.001f, -0.001f};
    Names more{"scale"};
    if (centred) more.push_back("bias");
    onnx_format::ModelProto model = model_of(op, "", shape, more);
    const int64_t n = of_image ? 1 : 8;
    const auto count = static_cast<size_t>(n);
    set_floats(model.mutable_graph()->add_initializer(), "scale", {n},
               std::vector<float>(count, 1));
    if (centred)
      set_floats(model.mutable_graph()->add_initializer(), "bias", {n},
                 std::vector<float>(count, 0));
    double mean = 0, squares = 0;
    for (const float v : x) mean += centred ? v / 8.0 : 0;
    for (const float v : x) squares += (v - mean) * (v - mean) / 8;
    std::vector<double> expected;
    for (const float v : x) expected.push_back((v - mean) / std::sqrt(squares + 1e-5));
    expect_near(run(model, shape, x), expected);
  }
}

}  // namespace
}  // namespace tilewright
