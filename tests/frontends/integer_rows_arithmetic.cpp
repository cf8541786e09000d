// Rows of operators that compute with integers: see integer_results_test.cpp.
#include "tests/frontends/integer_rules.h"

namespace tilewright {

void add_arithmetic(std::vector<Row>& rows) {
  const auto add = [&](const char* op, DType t, Rounding how, Beyond beyond, const char* source,
                       const Numbers& a, const Numbers& b, std::function<Real(Real, Real)> f,
                       NodeAttributes attributes = {}) {
    Numbers left, right;
    for (double x : a)
      for (double y : b) {
        left.push_back(x);
        right.push_back(y);
      }
    rows.push_back(
        {op, t, how, beyond, source, {list(t, left), list(t, right)}, each(f), attributes});
  };
  const auto fits = [](const Numbers& v, DType t) {
    Numbers kept;
    for (double x : v)
      if (Real{x} >= range_of(t).low) kept.push_back(x);
    return kept;
  };
  for (DType t : kIntegers) {
    const Numbers x = integers(t), divisors = fits({1, 2, 3, 7, -1, -2, -3, 100}, t);
    const Numbers shifts{0, 1, 3, 5};
    add("Div", t, Rounding::kTowardZero, Beyond::kWraps, "Div in the standard: truncated", x,
        divisors, [](Real a, Real b) { return a / b; });
    add("Mod", t, Rounding::kExact, Beyond::kWraps, "numpy.mod: the sign of the divisor", x,
        divisors, [](Real a, Real b) { return a - std::floor(a / b) * b; });
    add("Mod", t, Rounding::kExact, Beyond::kWraps, "numpy.fmod: the sign of the dividend", x,
        divisors, [](Real a, Real b) { return std::fmod(a, b); }, {{"fmod", int64_t{1}}});
    for (const auto& [op, f] :
         {std::pair<const char*, Real (*)(Real, Real)>{"Add", [](Real a, Real b) { return a + b; }},
          {"Sub", [](Real a, Real b) { return a - b; }},
          {"Mul", [](Real a, Real b) { return a * b; }},
          {"Max", [](Real a, Real b) { return std::max(a, b); }},
          {"Min", [](Real a, Real b) { return std::min(a, b); }}})
      add(op, t, Rounding::kExact, Beyond::kWraps, kNumpy, x, fits({3, -3, 100, 1}, t), f);
    if (is_unsigned(t)) {
      add("BitShift", t, Rounding::kDown, Beyond::kWraps, kStandard, x, shifts,
          [](Real a, Real b) { return std::ldexp(a, -static_cast<int>(b)); },
          {{"direction", std::string("RIGHT")}});
      add("BitShift", t, Rounding::kExact, Beyond::kWraps, kStandard, x, shifts,
          [](Real a, Real b) { return std::ldexp(a, static_cast<int>(b)); },
          {{"direction", std::string("LEFT")}});
    } else {
      rows.push_back(
          {"Neg", t, Rounding::kExact, Beyond::kWraps, kNumpy, {list(t, x)}, each([](Real v) {
             return -v;
           })});
      rows.push_back(
          {"Abs", t, Rounding::kExact, Beyond::kWraps, kNumpy, {list(t, x)}, each([](Real v) {
             return std::abs(v);
           })});
    }
    const Range r = range_of(t);
    rows.push_back(
        {"Clip",
         t,
         Rounding::kExact,
         Beyond::kNothing,
         kStandard,
         {list(t, x), known(t, {}, {r.low < 0 ? -3.0 : 2.0}), known(t, {}, {100})},
         each([r](Real v) { return std::min(std::max(v, Real{r.low < 0 ? -3 : 2}), Real{100}); })});
    for (double lambda : {0.5, 1.5})
      for (double bias : {0.0, 0.5, 1.0})
        rows.push_back({"Shrink",
                        t,
                        Rounding::kTowardZero,
                        Beyond::kSaturates,
                        "onnx.reference.ops.op_shrink: numpy.where, then astype",
                        {list(t, fits({0, 1, 2, 3, 50, -1, -2, -3, -50}, t))},
                        each([=](Real v) {
                          return v < -Real{lambda}  ? v + Real{bias}
                                 : v > Real{lambda} ? v - Real{bias}
                                                    : Real{0};
                        }),
                        {{"lambd", lambda}, {"bias", bias}}});
  }
}
void add_powers(std::vector<Row>& rows) {
  Numbers bases, whole, real, positive;
  for (double b : {0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 46340.0, -1.0, -2.0, -3.0, -10.0})
    for (double e : {0.0, 1.0, 2.0, 3.0, 5.0, 9.0}) {
      bases.push_back(b);
      whole.push_back(e);
      positive.push_back(std::abs(b));
      real.push_back(e == 5 ? 0.5 : e == 9 ? 1.5 : e);
    }
  const auto power = [](Real a, Real b) { return std::pow(a, b); };
  for (DType t : {DType::kInt32, DType::kInt64}) {
    for (DType of : {DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt32})
      rows.push_back({"Pow",
                      t,
                      Rounding::kExact,
                      Beyond::kWraps,
                      "numpy.power of integers",
                      {list(t, bases), list(of, whole)},
                      each([t](Real a, Real b) {
                        uint64_t p = 1;  // modulo 2^64, as that of each narrower type
                        for (int k = 0; k < static_cast<int>(b); ++k)
                          p *= static_cast<uint64_t>(static_cast<int64_t>(a));
                        return t == DType::kInt64 ? Real(static_cast<int64_t>(p))
                                                  : Real(static_cast<int32_t>(p));
                      })});
    for (DType of : {DType::kFloat32, DType::kFloat64})
      rows.push_back({"Pow",
                      t,
                      Rounding::kTowardZero,
                      Beyond::kSaturates,
                      "numpy.power in f64, then astype",
                      {list(t, positive), list(of, real)},
                      each(power)});
    rows.push_back({"Pow",
                    t,
                    Rounding::kTowardZero,
                    Beyond::kSaturates,
                    "numpy.power in f64, then astype",
                    {list(t, {-1, -2, -3, -7, -10}), list(DType::kFloat32, {3, 3, 4, 3, 2})},
                    each(power)});
  }
}
void add_reductions(std::vector<Row>& rows) {
  const NodeAttributes last{{"axes", Ints{1}}, {"keepdims", int64_t{0}}};
  // By attribute, as all opsets below 13 have it.
  constexpr int64_t kOpset = 11;
  for (DType t : {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64}) {
    Numbers x = integers(t);
    x.resize(x.size() / 4 * 4);
    const Operand table = given(t, {static_cast<int64_t>(x.size()) / 4, 4}, x),
                  small = given(t, {3, 4}, {1, 2, 3, 4, 0, 1, 1, 0, 9, 9, 10, 7});
    const auto add = [&](const char* op, Rounding how, Beyond beyond, const char* source,
                         const Operand& of, std::function<Real(const std::vector<Real>&)> f) {
      rows.push_back({op, t, how, beyond, source, {of}, each_row(f), last, kOpset});
    };
    add("ReduceSum", Rounding::kExact, Beyond::kWraps, kNumpy, table, sum);
    add("ReduceMean", Rounding::kTowardZero, Beyond::kNothing,
        "numpy.mean(dtype=of x): the sum wraps, the quotient is cut off", table,
        [t](const std::vector<Real>& row) { return wrapped_sum(t)(row) / 4; });
    add("ReduceSumSquare", Rounding::kExact, Beyond::kWraps, kNumpy, small,
        [](const std::vector<Real>& row) {
          Real s = 0;
          for (Real v : row) s += v * v;
          return s;
        });
    add("ReduceL2", Rounding::kTowardZero, Beyond::kNothing,
        "onnx.reference.ops.op_reduce_l2: numpy.sqrt, then astype", small,
        [](const std::vector<Real>& row) {
          Real s = 0;
          for (Real v : row) s += v * v;
          return std::sqrt(s);
        });
    add("ReduceL1", Rounding::kExact, Beyond::kWraps, kNumpy, small,
        [](const std::vector<Real>& row) {
          Real s = 0;
          for (Real v : row) s += std::abs(v);
          return s;
        });
    add("ReduceLogSum", Rounding::kTowardZero, Beyond::kNothing,
        "the standard before opset 28 by f64, as ONNX Runtime casts it", small,
        [](const std::vector<Real>& row) { return std::log(sum(row)); });
    add("ReduceLogSumExp", Rounding::kTowardZero, Beyond::kNothing,
        "the standard before opset 28 by f64, as ONNX Runtime casts it", small,
        [](const std::vector<Real>& row) {
          Real s = 0;
          for (Real v : row) s += std::exp(v);
          return std::log(s);
        });
    rows.push_back({"CumSum",
                    t,
                    Rounding::kExact,
                    Beyond::kWraps,
                    kNumpy,
                    {list(t, integers(t)), known(DType::kInt64, {}, {0})},
                    [t](const Operands& x) {
                      std::vector<Real> y;
                      Real s = 0;
                      for (double v : x[0])
                        y.push_back(s = in_range(s + Real{v}, t, Beyond::kWraps));
                      return y;
                    }});
  }
}
void add_products(std::vector<Row>& rows) {
  for (DType t : {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64}) {
    const Numbers a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10, 11, 13}, c{1, 2, 3, 4};
    const auto product = [](const Operands& x, double alpha, double beta) {
      std::vector<Real> y;
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 2; ++j) {
          Real s = 0;
          for (size_t k = 0; k < 3; ++k) s += Real{x[0][3 * i + k]} * Real{x[1][2 * k + j]};
          y.push_back(s * Real{alpha} + (x.size() > 2 ? Real{x[2][2 * i + j]} * Real{beta} : 0));
        }
      return y;
    };
    const Operand left = given(t, {2, 3}, a), right = given(t, {3, 2}, b),
                  added = given(t, {2, 2}, c);
    rows.push_back({"MatMul",
                    t,
                    Rounding::kExact,
                    Beyond::kWraps,
                    kNumpy,
                    {left, right},
                    [=](const Operands& x) { return product(x, 1, 0); }});
    rows.push_back({"Einsum",
                    t,
                    Rounding::kExact,
                    Beyond::kWraps,
                    kNumpy,
                    {left, right},
                    [=](const Operands& x) { return product(x, 1, 0); },
                    {{"equation", std::string("ij,jk->ik")}}});
    for (const auto& [alpha, beta] :
         {std::pair{1.0, 1.0}, {2.0, 3.0}, {0.5, 0.5}, {0.25, 1.0}, {1.0, 1.5}})
      rows.push_back(
          {"Gemm",
           t,
           Rounding::kTowardZero,
           Beyond::kNothing,
           "onnx.reference.ops.op_gemm: fractions are added up, then astype",
           {left, right, added},
           [=, alpha = alpha, beta = beta](const Operands& x) { return product(x, alpha, beta); },
           {{"alpha", alpha}, {"beta", beta}}});
    for (const auto& [from, to, step] :
         {std::tuple{3.0, 20.0, 4.0}, {5.0, 5.0, 1.0}, {0.0, 7.0, 7.0}})
      rows.push_back({"Range",
                      t,
                      Rounding::kExact,
                      Beyond::kNothing,
                      "numpy.arange",
                      {known(t, {}, {from}), known(t, {}, {to}), known(t, {}, {step})},
                      [](const Operands& x) {
                        std::vector<Real> y;
                        for (Real v = Real{x[0][0]}; v < Real{x[1][0]}; v += Real{x[2][0]})
                          y.push_back(v);
                        return y;
                      }});
  }
}
// Results that are whole numbers of a floating-point type.
void add_roundings(std::vector<Row>& rows) {
  for (DType t : {DType::kFloat32, DType::kFloat64})
    for (const auto& [op, how] : {std::pair{"Round", Rounding::kHalfToEven},
                                  {"Floor", Rounding::kDown},
                                  {"Ceil", Rounding::kUp}}) {
      Numbers x = fractions();
      for (double& v : x)
        if (t == DType::kFloat32) v = static_cast<double>(static_cast<float>(v));
      rows.push_back(
          {op, t, how, Beyond::kNothing, kStandard, {list(t, x)}, each([](Real v) { return v; })});
    }
}

}  // namespace tilewright
