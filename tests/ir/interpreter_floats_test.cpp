// Every operation of the interpreter on floats, and conversions, against plain C++.
#include <bit>
#include <limits>
#include <random>

#include "tests/ir/run_operation.h"

namespace tilewright::ir {
namespace {

const std::vector<float> kFloats{0.f,   -0.f,   1.f,    -1.f,  0.5f,      2.5f,       3.5f, -2.5f,
                                 7.25f, -7.25f, 1e-20f, 3e20f, HUGE_VALF, -HUGE_VALF, NAN,  0.3f};

template <typename T>
class Floats : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, BinaryIsIeee) {
  using T = TypeParam;
  std::vector<T> a, b;
  for (float x : kFloats)
    for (float y : kFloats) {
      a.push_back(static_cast<T>(x) * T(1.1));
      b.push_back(static_cast<T>(y));
    }
  auto check = [&](BinaryOp op, auto&& expected) {
    const std::vector<T> got = binary_of(op, a, b);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(same(got[i], expected(a[i], b[i])))
          << name(op) << " " << a[i] << " " << b[i] << " = " << got[i];
  };
  check(BinaryOp::kAdd, [](T x, T y) { return x + y; });
  check(BinaryOp::kSub, [](T x, T y) { return x - y; });
  check(BinaryOp::kMul, [](T x, T y) { return x * y; });
  check(BinaryOp::kDiv, [](T x, T y) { return x / y; });
  check(BinaryOp::kTruncMod, [](T x, T y) { return std::fmod(x, y); });
  check(BinaryOp::kFloorMod, [](T x, T y) {
    T q = std::floor(x / y);
    T p = q * y;
    return x - p;
  });
  check(BinaryOp::kPow, [](T x, T y) {
    return static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  });
  check(BinaryOp::kMaxNumber, [](T x, T y) { return y > x ? y : x; });
  const auto low = binary_of(BinaryOp::kMin, a, b), high = binary_of(BinaryOp::kMax, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const bool nan = std::isnan(a[i]) || std::isnan(b[i]);
    EXPECT_TRUE(nan ? std::isnan(low[i]) : low[i] == std::fmin(a[i], b[i]));
    EXPECT_TRUE(nan ? std::isnan(high[i]) : high[i] == std::fmax(a[i], b[i]));
  }
  auto compare = [&](BinaryOp op, auto&& expected) {
    const auto got = run<T, uint8_t>(kTypeOf<T>, DType::kBool, a, b,
                                     [&](Expr x, Expr y) { return binary(op, x, y); });
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(got[i], expected(a[i], b[i])) << name(op) << " " << a[i] << " " << b[i];
  };
  compare(BinaryOp::kEq, [](T x, T y) { return x == y; });
  compare(BinaryOp::kNe, [](T x, T y) { return x != y; });
  compare(BinaryOp::kLt, [](T x, T y) { return x < y; });
  compare(BinaryOp::kGe, [](T x, T y) { return x >= y; });
}

TYPED_TEST(Floats, UnaryIsTheMathematicalFunctionRounded) {
  using T = TypeParam;
  std::vector<T> a(kFloats.begin(), kFloats.end());
  auto check = [&](UnaryOp op, auto&& expected) {
    const std::vector<T> got = unary_of(op, a);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(same(got[i], static_cast<T>(expected(static_cast<double>(a[i])))))
          << name(op) << " " << a[i];
  };
  using D = double;
  check(UnaryOp::kNeg, [](D x) { return -x; });
  check(UnaryOp::kAbs, [](D x) { return std::fabs(x); });
  check(UnaryOp::kSqrt, [](D x) { return std::sqrt(x); });
  check(UnaryOp::kExp, [](D x) { return std::exp(x); });
  check(UnaryOp::kLog, [](D x) { return std::log(x); });
  check(UnaryOp::kSin, [](D x) { return std::sin(x); });
  check(UnaryOp::kCos, [](D x) { return std::cos(x); });
  check(UnaryOp::kTan, [](D x) { return std::tan(x); });
  check(UnaryOp::kAsin, [](D x) { return std::asin(x); });
  check(UnaryOp::kAcos, [](D x) { return std::acos(x); });
  check(UnaryOp::kAtan, [](D x) { return std::atan(x); });
  check(UnaryOp::kSinh, [](D x) { return std::sinh(x); });
  check(UnaryOp::kCosh, [](D x) { return std::cosh(x); });
  check(UnaryOp::kTanh, [](D x) { return std::tanh(x); });
  check(UnaryOp::kAsinh, [](D x) { return std::asinh(x); });
  check(UnaryOp::kAcosh, [](D x) { return std::acosh(x); });
  check(UnaryOp::kAtanh, [](D x) { return std::atanh(x); });
  check(UnaryOp::kErf, [](D x) { return std::erf(x); });
  check(UnaryOp::kExpm1, [](D x) { return std::expm1(x); });
  check(UnaryOp::kLog1p, [](D x) { return std::log1p(x); });
  check(UnaryOp::kSigmoid, [](D x) { return x < -40 ? std::exp(x) : 1 / (1 + std::exp(-x)); });
  check(UnaryOp::kFloor, [](D x) { return std::floor(x); });
  check(UnaryOp::kCeil, [](D x) { return std::ceil(x); });
  check(UnaryOp::kRoundEven, [](D x) { return std::nearbyint(x); });
  check(UnaryOp::kTrunc, [](D x) { return std::trunc(x); });
  for (UnaryOp op : {UnaryOp::kIsNan, UnaryOp::kIsInf}) {
    const auto got =
        run<T, uint8_t>(kTypeOf<T>, DType::kBool, a, a, [&](Expr x, Expr) { return unary(op, x); });
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(got[i], op == UnaryOp::kIsNan ? std::isnan(a[i]) : std::isinf(a[i]));
  }
}

TEST(SmallFloats, ArithmeticIsFloatRoundedOnce) {
  std::mt19937 random(5);
  std::vector<uint16_t> a, b;
  for (int n = 0; n < 2000; ++n) {
    a.push_back(static_cast<uint16_t>(random()));
    b.push_back(static_cast<uint16_t>(random()));
  }
  auto check = [&](DType t, BinaryOp op, auto&& widen, auto&& narrow, auto&& f) {
    const auto got =
        run<uint16_t, uint16_t>(t, t, a, b, [&](Expr x, Expr y) { return binary(op, x, y); });
    for (size_t i = 0; i < a.size(); ++i) {
      const float x = widen(got[i]), y = widen(narrow(f(widen(a[i]), widen(b[i]))));
      ASSERT_TRUE(same(x, y)) << name(op) << " " << widen(a[i]) << " " << widen(b[i]) << " = " << x
                              << ", expected " << y;
    }
  };
  const std::pair<BinaryOp, float (*)(float, float)> ops[] = {
      {BinaryOp::kAdd, [](float x, float y) { return x + y; }},
      {BinaryOp::kMul, [](float x, float y) { return x * y; }},
      {BinaryOp::kDiv, [](float x, float y) { return x / y; }}};
  for (auto [op, f] : ops) {
    check(
        DType::kFloat16, op, Half::to_float, [](float x) { return Half::from_double(x); }, f);
    check(
        DType::kBFloat16, op, BFloat::to_float, [](float x) { return BFloat::from_double(x); }, f);
  }
}

TEST(SmallFloats, ConversionRoundsToTheNearestOfAllValues) {
  std::mt19937_64 random(9);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {  // every value survives
    const auto h = static_cast<uint16_t>(bits);
    const float f = Half::to_float(h), g = BFloat::to_float(h);
    EXPECT_TRUE(std::isnan(f) || Half::from_double(f) == h) << bits;
    EXPECT_TRUE(std::isnan(g) || BFloat::from_double(g) == h) << bits;
  }
  for (uint16_t h = 0; h < 0x7bff; ++h) {  // halfway goes to even, just beside it to the nearer
    const double low = Half::to_float(h), high = Half::to_float(static_cast<uint16_t>(h + 1)),
                 middle = (low + high) / 2;
    EXPECT_EQ(Half::from_double(middle), h + (h & 1));
    EXPECT_EQ(Half::from_double(std::nextafter(middle, high)), h + 1);
    EXPECT_EQ(Half::from_double(-std::nextafter(middle, low)), h | 0x8000);
  }
  EXPECT_EQ(Half::from_double(65519.99), 0x7bff);
  EXPECT_EQ(Half::from_double(65520), 0x7c00);
  EXPECT_EQ(Half::from_double(0x1p-25), 0);
  EXPECT_EQ(Half::from_double(std::nextafter(0x1p-25, 1)), 1);
  EXPECT_EQ(Half::to_float(0x3c00), 1.0f);
  EXPECT_EQ(BFloat::to_float(0x3fc0), 1.5f);
  for (int n = 0; n < 100000; ++n) {
    const auto bits = static_cast<uint32_t>(random());
    const float f = std::bit_cast<float>(bits);
    if (std::isnan(f)) continue;
    EXPECT_EQ(BFloat::from_double(f),
              static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16))
        << f;
  }
}

TEST(Conversions, BetweenIntegersFloatsAndBool) {
  std::vector<int32_t> in{0,    1,     -1,       300,
                          -300, 65535, 16777217, std::numeric_limits<int32_t>::min()};
  const auto small = run<int32_t, int8_t>(DType::kInt32, DType::kInt8, in, in,
                                          [](Expr x, Expr) { return cast(DType::kInt8, x); });
  const auto unsigned_ = run<int32_t, uint64_t>(
      DType::kInt32, DType::kUInt64, in, in, [](Expr x, Expr) { return cast(DType::kUInt64, x); });
  const auto real = run<int32_t, float>(DType::kInt32, DType::kFloat32, in, in,
                                        [](Expr x, Expr) { return cast(DType::kFloat32, x); });
  const auto truth = run<int32_t, uint8_t>(DType::kInt32, DType::kBool, in, in,
                                           [](Expr x, Expr) { return cast(DType::kBool, x); });
  const auto bits = run<int32_t, float>(DType::kInt32, DType::kFloat32, in, in,
                                        [](Expr x, Expr) { return bitcast(DType::kFloat32, x); });
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(small[i], static_cast<int8_t>(in[i]));
    EXPECT_EQ(unsigned_[i], static_cast<uint64_t>(static_cast<int64_t>(in[i])));
    EXPECT_EQ(real[i], static_cast<float>(in[i]));
    EXPECT_EQ(truth[i], in[i] != 0);
    EXPECT_EQ(std::bit_cast<int32_t>(bits[i]), in[i]);
  }
  std::vector<float> f{0.f, -0.f, 0.1f, NAN};
  EXPECT_EQ((run<float, uint8_t>(DType::kFloat32, DType::kBool, f, f,
                                 [](Expr x, Expr) { return cast(DType::kBool, x); })),
            (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(Lanes, ReductionIsATreeOfHalves) {
  Buffer in = make_buffer("in", DType::kFloat32, {Expr(7)}),
         out = make_buffer("out", DType::kFloat32, {Expr(2)});
  auto sum = [&](int lanes) { return reduce_lanes(BinaryOp::kAdd, load(in, {ramp(0, 1, lanes)})); };
  const Kernel k{
      "k", {in, out}, {}, seq({store(out, {Expr(0)}, sum(4)), store(out, {Expr(1)}, sum(7))})};
  std::vector<float> v{1e8f, 1.f, -1e8f, 2.f, 3.f, 1e-3f, 5.f}, r(2);
  ASSERT_TRUE(interpret(k, {v.data(), r.data()}, {}).ok());
  EXPECT_EQ(r[0], (v[0] + v[2]) + (v[1] + v[3]));
  EXPECT_EQ(r[1], ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + v[3]));
}

}  // namespace
}  // namespace tilewright::ir
