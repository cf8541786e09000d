// Every operation of the interpreter against plain C++ on the types themselves.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ir/interpreter/float16.h"
#include "ir/interpreter/interpreter.h"
#include "ir/loops/nodes.h"

namespace tilewright::ir {
namespace {

template <typename T>
constexpr DType kTypeOf = DType::kBool;
template <>
constexpr DType kTypeOf<float> = DType::kFloat32;
template <>
constexpr DType kTypeOf<double> = DType::kFloat64;
template <>
constexpr DType kTypeOf<int8_t> = DType::kInt8;
template <>
constexpr DType kTypeOf<int16_t> = DType::kInt16;
template <>
constexpr DType kTypeOf<int32_t> = DType::kInt32;
template <>
constexpr DType kTypeOf<int64_t> = DType::kInt64;
template <>
constexpr DType kTypeOf<uint8_t> = DType::kUInt8;
template <>
constexpr DType kTypeOf<uint16_t> = DType::kUInt16;
template <>
constexpr DType kTypeOf<uint32_t> = DType::kUInt32;
template <>
constexpr DType kTypeOf<uint64_t> = DType::kUInt64;

// out[i] = f(a[i], b[i]) by the interpreter, as scalars and as vectors of 4; both must agree.
template <typename A, typename Out, typename F>
std::vector<Out> run(DType type, DType out_type, std::vector<A> a, std::vector<A> b, F&& f) {
  while (a.size() % 4) {
    a.push_back(a.back());
    b.push_back(b.back());
  }
  const auto count = static_cast<int64_t>(a.size());
  Buffer ba = make_buffer("a", type, {Expr(count)}), bb = make_buffer("b", type, {Expr(count)}),
         out = make_buffer("out", out_type, {Expr(count)});
  Var i("i");
  const Kernel scalar{"scalar",
                      {ba, bb, out},
                      {},
                      for_loop(i, count, store(out, {i}, f(load(ba, {i}), load(bb, {i}))))};
  Expr lanes = ramp(i * Expr(4), 1, 4);
  const Kernel vector{
      "vector",
      {ba, bb, out},
      {},
      for_loop(i, count / 4, store(out, {lanes}, f(load(ba, {lanes}), load(bb, {lanes}))))};
  std::vector<Out> x(a.size()), y(a.size());
  Status s = interpret(scalar, {a.data(), b.data(), x.data()}, {});
  EXPECT_TRUE(s.ok()) << s.error().to_string();
  s = interpret(vector, {a.data(), b.data(), y.data()}, {});
  EXPECT_TRUE(s.ok()) << s.error().to_string();
  // The sign of a NaN is left open.
  auto is_nan = [&](const Out& v) {
    if (out_type == DType::kFloat16) return std::isnan(Half::to_float(static_cast<uint16_t>(v)));
    if (out_type == DType::kBFloat16) return std::isnan(BFloat::to_float(static_cast<uint16_t>(v)));
    return v != v;
  };
  for (size_t n = 0; n < x.size(); ++n)
    EXPECT_TRUE(std::memcmp(&x[n], &y[n], sizeof(Out)) == 0 || (is_nan(x[n]) && is_nan(y[n]))) << n;
  return x;
}
template <typename T>
std::vector<T> binary_of(BinaryOp op, const std::vector<T>& a, const std::vector<T>& b) {
  return run<T, T>(kTypeOf<T>, kTypeOf<T>, a, b, [&](Expr x, Expr y) { return binary(op, x, y); });
}
template <typename T>
std::vector<T> unary_of(UnaryOp op, const std::vector<T>& a) {
  return run<T, T>(kTypeOf<T>, kTypeOf<T>, a, a, [&](Expr x, Expr) { return unary(op, x); });
}
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <typename T>
std::vector<std::pair<T, T>> integer_pairs() {
  std::mt19937_64 random(3);
  std::vector<std::pair<T, T>> pairs;
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const T edge[] = {
      low, static_cast<T>(low + 1), static_cast<T>(-1), 0, 1, 2, 3, 7, static_cast<T>(high - 1),
      high};
  for (T a : edge)
    for (T b : edge) pairs.emplace_back(a, b);
  for (int n = 0; n < 300; ++n)
    pairs.emplace_back(static_cast<T>(random()), static_cast<T>(random() >> (random() % 64)));
  return pairs;
}

template <typename T>
class Integers : public testing::Test {};
using IntegerTypes =
    testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, WrapDivideCompareAndShift) {
  using T = TypeParam;
  using Wide = __int128;
  std::vector<T> a, b;
  for (auto [x, y] : integer_pairs<T>()) {
    if (y == 0) continue;
    a.push_back(x);
    b.push_back(y);
  }
  auto check = [&](BinaryOp op, auto&& expected) {
    const std::vector<T> got = binary_of(op, a, b);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(got[i], static_cast<T>(expected(static_cast<Wide>(a[i]), static_cast<Wide>(b[i]))))
          << name(op) << " " << +a[i] << " " << +b[i];
  };
  auto floor_quotient = [](Wide x, Wide y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  check(BinaryOp::kAdd, [](Wide x, Wide y) { return x + y; });
  check(BinaryOp::kSub, [](Wide x, Wide y) { return x - y; });
  check(BinaryOp::kMul, [](Wide x, Wide y) {
    return static_cast<Wide>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
  });
  check(BinaryOp::kDiv, [](Wide x, Wide y) { return x / y; });
  check(BinaryOp::kTruncMod, [](Wide x, Wide y) { return x % y; });
  check(BinaryOp::kFloorDiv, floor_quotient);
  check(BinaryOp::kFloorMod, [&](Wide x, Wide y) { return x - floor_quotient(x, y) * y; });
  check(BinaryOp::kMin, [](Wide x, Wide y) { return x < y ? x : y; });
  check(BinaryOp::kMax, [](Wide x, Wide y) { return x > y ? x : y; });
  check(BinaryOp::kAnd, [](Wide x, Wide y) { return x & y; });
  check(BinaryOp::kOr, [](Wide x, Wide y) { return x | y; });
  check(BinaryOp::kXor, [](Wide x, Wide y) { return x ^ y; });
  constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  check(BinaryOp::kShl, [](Wide x, Wide y) {
    return y < 0 || y >= kBits ? 0 : static_cast<Wide>(static_cast<unsigned __int128>(x) << y);
  });
  check(BinaryOp::kShr,
        [](Wide x, Wide y) { return y < 0 || y >= kBits ? (x < 0 ? -1 : 0) : x >> y; });
  auto compare = [&](BinaryOp op, auto&& expected) {
    const auto got = run<T, uint8_t>(kTypeOf<T>, DType::kBool, a, b,
                                     [&](Expr x, Expr y) { return binary(op, x, y); });
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(got[i], expected(a[i], b[i])) << name(op) << " " << +a[i] << " " << +b[i];
  };
  compare(BinaryOp::kEq, [](T x, T y) { return x == y; });
  compare(BinaryOp::kNe, [](T x, T y) { return x != y; });
  compare(BinaryOp::kLt, [](T x, T y) { return x < y; });
  compare(BinaryOp::kLe, [](T x, T y) { return x <= y; });
  compare(BinaryOp::kGt, [](T x, T y) { return x > y; });
  compare(BinaryOp::kGe, [](T x, T y) { return x >= y; });
}

TYPED_TEST(Integers, PowerAndUnary) {
  using T = TypeParam;
  const std::vector<T> base{2, 3, 7, static_cast<T>(-3), 1, static_cast<T>(-1), 0, 0},
      power{5, 20, 0, 3, 100, 101, 0, 4};
  const std::vector<T> got = binary_of(BinaryOp::kPow, base, power);
  for (size_t i = 0; i < base.size(); ++i) {
    T expected = 1;
    for (T n = 0; n < power[i]; ++n)
      expected = static_cast<T>(static_cast<uint64_t>(expected) * static_cast<uint64_t>(base[i]));
    EXPECT_EQ(got[i], expected) << +base[i] << " " << +power[i];
  }
  if (std::is_signed_v<T>) {
    EXPECT_EQ(binary_of<T>(
                  BinaryOp::kPow, {2, static_cast<T>(-1), static_cast<T>(-1), 0},
                  {static_cast<T>(-1), static_cast<T>(-3), static_cast<T>(-2), static_cast<T>(-1)}),
              (std::vector<T>{0, static_cast<T>(-1), 1, 0}));
  }
  std::vector<T> a;
  for (auto [x, y] : integer_pairs<T>()) a.push_back(x);
  const auto neg = unary_of(UnaryOp::kNeg, a), inverse = unary_of(UnaryOp::kNot, a),
             abs = unary_of(UnaryOp::kAbs, a), floor = unary_of(UnaryOp::kFloor, a);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(neg[i], static_cast<T>(0 - static_cast<uint64_t>(a[i])));
    EXPECT_EQ(inverse[i], static_cast<T>(~a[i]));
    EXPECT_EQ(abs[i], a[i] < T(0) ? neg[i] : a[i]);
    EXPECT_EQ(floor[i], a[i]);
  }
}

TYPED_TEST(Integers, ConversionsFromFloatSaturate) {
  using T = TypeParam;
  const double low = static_cast<double>(std::numeric_limits<T>::min()),
               high = static_cast<double>(std::numeric_limits<T>::max());
  std::vector<double> in{0,           0.9,          -0.9,  1.5,    -1.5,     100.99,    low, high,
                         low * 2 - 1, high * 2 + 1, 1e300, -1e300, HUGE_VAL, -HUGE_VAL, NAN, 3};
  const auto got = run<double, T>(DType::kFloat64, kTypeOf<T>, in, in,
                                  [](Expr x, Expr) { return cast(kTypeOf<T>, x); });
  for (size_t i = 0; i < in.size(); ++i) {
    const T expected = std::isnan(in[i]) ? T(0)
                       : in[i] <= low    ? std::numeric_limits<T>::min()
                       : in[i] >= high   ? std::numeric_limits<T>::max()
                                         : static_cast<T>(in[i]);
    EXPECT_EQ(got[i], expected) << in[i];
  }
}

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
  check(UnaryOp::kSigmoid, [](D x) { return 1 / (1 + std::exp(-x)); });
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
    check(DType::kFloat16, op, Half::to_float, [](float x) { return Half::from_double(x); }, f);
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

TEST(Booleans, LogicIsLogical) {
  const std::vector<uint8_t> a{0, 0, 1, 1}, b{0, 1, 0, 1};
  auto of = [&](BinaryOp op) {
    return run<uint8_t, uint8_t>(DType::kBool, DType::kBool, a, b,
                                 [&](Expr x, Expr y) { return binary(op, x, y); });
  };
  EXPECT_EQ(of(BinaryOp::kAnd), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(of(BinaryOp::kOr), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(of(BinaryOp::kXor), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ((run<uint8_t, uint8_t>(DType::kBool, DType::kBool, a, b,
                                   [](Expr x, Expr) { return logical_not(x); })),
            (std::vector<uint8_t>{1, 1, 0, 0}));
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
