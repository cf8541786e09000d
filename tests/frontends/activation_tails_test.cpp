// Activations far from 0 and very near to it: relative errors of a few units in the last place,
// against the same functions in long double.
#include <cmath>
#include <limits>

#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

using Real = long double;

struct Case {
  const char* op;
  Real (*reference)(Real);
  double units;  // allowed error, relative to the result
  NodeAttributes attributes = {};
  const char* label = "";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.op << c.label; }

Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real softplus(Real x) { return std::max<Real>(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
Real from_float(float x) { return x; }

const Case kCases[] = {
    {"Sigmoid", sigmoid, 2},
    {"Softplus", softplus, 3},
    {"Elu", [](Real x) { return x < 0 ? std::expm1(x) : x; }, 3},
    {"Celu", [](Real x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }, 3, {{"alpha", 2.0}}},
    {"Selu",
     [](Real x) {
       const Real a = from_float(1.67326319217681884765625f),
                  g = from_float(1.05070102214813232421875f);
       return x < 0 ? a * g * std::expm1(x) : g * x;
     },
     4},
    {"Mish", [](Real x) { return x * std::tanh(softplus(x)); }, 6},
    {"Swish", [](Real x) { return x * sigmoid(x); }, 4},
    {"Tanh", [](Real x) { return std::tanh(x); }, 3},
    {"Softsign", [](Real x) { return x / (1 + std::fabs(x)); }, 2},
};

class ActivationTails : public testing::TestWithParam<Case> {
 protected:
  template <typename T>
  void check(DType t) {
    using L = std::numeric_limits<T>;
    std::vector<double> values;
    for (int exponent = L::min_exponent - 1; exponent < 10; ++exponent)
      for (const double part : {1.0, 1.3, 1.77})
        for (const double sign : {1.0, -1.0}) values.push_back(sign * std::ldexp(part, exponent));
    for (double x = -110; x < 110; x += 0.37) values.push_back(x);
    const auto n = static_cast<int64_t>(values.size());
    const Tensor operand = tensor_of(t, {n}, values);
    const Case& c = GetParam();
    const std::vector<Tensor> y = run_node(c.op, {{operand}}, c.attributes, 24);
    ASSERT_EQ(y.size(), 1u);
    const T *x = operand.data_as<T>(), *results = y[0].data_as<T>();
    for (int64_t i = 0; i < n; ++i) {
      const Real at = x[i], expected = c.reference(at), found = results[i];
      // A factor x below 1 / smallest normal: its other factor may be subnormal.
      const Real lost = std::fabs(at) * L::denorm_min();
      const Real unit = std::max<Real>(std::fabs(expected) * L::epsilon(), L::denorm_min());
      EXPECT_LE(std::fabs(found - expected), c.units * unit + lost)
          << "at " << static_cast<double>(at) << ": " << static_cast<double>(found) << ", expected "
          << static_cast<double>(expected);
    }
  }
};

TEST_P(ActivationTails, Float) { check<float>(DType::kFloat32); }
TEST_P(ActivationTails, Double) { check<double>(DType::kFloat64); }

INSTANTIATE_TEST_SUITE_P(Ops, ActivationTails, testing::ValuesIn(kCases), [](const auto& info) {
  return std::string(info.param.op) + info.param.label;
});

// Absolutely near everywhere; on the negative side (1 + tanh) / 2 has no digit left, a sigmoid has.
TEST(TanhGelu, KeepsItsTail) {
  const std::vector<double> values{-9, -8, -7, -6, -5, -4, -3, -1e-3, 1e-3, 2, 9};
  const auto n = static_cast<int64_t>(values.size());
  const Tensor operand = tensor_of(DType::kFloat32, {n}, values);
  const std::vector<Tensor> y = run_node("Gelu", {{operand}}, {{"approximate", "tanh"}}, 24);
  ASSERT_EQ(y.size(), 1u);
  const float *x = operand.data_as<float>(), *results = y[0].data_as<float>();
  for (int64_t i = 0; i < n; ++i) {
    const Real at = x[i],
               u = 2 * std::sqrt(2 / std::acos(Real(-1))) * (at + Real(0.044715) * at * at * at);
    const Real expected = at * sigmoid(u);
    // The error of u counts as often as u is large.
    const Real units = 4 + 4 * std::fabs(u);
    EXPECT_NEAR(static_cast<double>(results[i] / expected), 1,
                static_cast<double>(units) * std::numeric_limits<float>::epsilon());
  }
}

}  // namespace
}  // namespace tilewright
