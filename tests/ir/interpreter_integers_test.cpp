// Every operation of the interpreter on integers and booleans against plain C++.
#include <limits>
#include <random>

#include "tests/ir/run_operation.h"

namespace tilewright::ir {
namespace {

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

}  // namespace
}  // namespace tilewright::ir
