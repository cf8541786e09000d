// Sizes as postfix expressions over symbols, evaluated at each run: they come from files, too, and
// so must have no value rather than a wrong one.
#include "runtime/size_expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tilewright {
namespace {

SizeStep c(int64_t v) { return {SizeOp::kConstant, v}; }
SizeStep s(int64_t v) { return {SizeOp::kSymbol, v}; }
SizeStep op(SizeOp o) { return {o}; }

int64_t floor_of(int64_t a, int64_t b) {
  const auto q = static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
  return q;
}

// Division rounds down, remainders have the sign of the divisor, as in Python.
TEST(SizeExpr, EvaluatesEachOperation) {
  for (int64_t a : {-7, -1, 0, 2, 9})
    for (int64_t b : {-3, -1, 1, 4, 9}) {
      const std::vector<int64_t> symbols{a, b};
      auto value = [&](SizeOp o) { return evaluate({s(0), s(1), op(o)}, symbols); };
      EXPECT_EQ(value(SizeOp::kAdd), a + b);
      EXPECT_EQ(value(SizeOp::kSub), a - b);
      EXPECT_EQ(value(SizeOp::kMul), a * b);
      EXPECT_EQ(value(SizeOp::kFloorDiv), floor_of(a, b));
      EXPECT_EQ(value(SizeOp::kFloorMod), a - floor_of(a, b) * b);
      EXPECT_EQ(value(SizeOp::kMin), std::min(a, b));
      EXPECT_EQ(value(SizeOp::kMax), std::max(a, b));
      EXPECT_EQ(value(SizeOp::kEq), a == b);
      EXPECT_EQ(value(SizeOp::kNe), a != b);
      EXPECT_EQ(value(SizeOp::kLt), a < b);
      EXPECT_EQ(value(SizeOp::kLe), a <= b);
      EXPECT_EQ(value(SizeOp::kAnd), a && b);
      EXPECT_EQ(value(SizeOp::kOr), a || b);
      EXPECT_EQ(evaluate({s(0), op(SizeOp::kNot)}, symbols), !a);
      EXPECT_EQ(evaluate({s(0), s(1), c(5), op(SizeOp::kSelect)}, symbols), a ? b : 5);
    }
  EXPECT_EQ(evaluate({}, {}), 0);
}

// Overflow, division by 0, symbols that are not known yet.
TEST(SizeExpr, HasNoValueWhereArithmeticHasNone) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(evaluate({c(big), c(1), op(SizeOp::kAdd)}, {}), std::nullopt);
  EXPECT_EQ(evaluate({c(-big), c(2), op(SizeOp::kSub)}, {}), std::nullopt);
  EXPECT_EQ(evaluate({c(big), c(2), op(SizeOp::kMul)}, {}), std::nullopt);
  EXPECT_EQ(evaluate({c(1), c(0), op(SizeOp::kFloorDiv)}, {}), std::nullopt);
  EXPECT_EQ(evaluate({c(1), c(0), op(SizeOp::kFloorMod)}, {}), std::nullopt);
  EXPECT_EQ(evaluate({c(std::numeric_limits<int64_t>::min()), c(-1), op(SizeOp::kFloorDiv)}, {}),
            std::nullopt);
  const std::vector<int64_t> unknown{kUnknownSize, 3};
  EXPECT_EQ(evaluate({s(0), c(1), op(SizeOp::kAdd)}, unknown), std::nullopt);
  EXPECT_EQ(evaluate({s(1), s(1), s(0), op(SizeOp::kSelect)}, unknown),
            3);  // the branch not taken may be unknown
}

TEST(SizeExpr, ChecksTheForm) {
  EXPECT_TRUE(check_size_expr({s(0), c(2), op(SizeOp::kMul)}, 1).ok());
  EXPECT_TRUE(check_size_expr({}, 0).ok());
  EXPECT_FALSE(check_size_expr({s(1)}, 1).ok());
  EXPECT_FALSE(check_size_expr({s(-1)}, 1).ok());
  EXPECT_FALSE(check_size_expr({c(1), op(SizeOp::kAdd)}, 0).ok());
  EXPECT_FALSE(check_size_expr({c(1), c(2)}, 0).ok());
  EXPECT_FALSE(check_size_expr({c(1), {static_cast<SizeOp>(99)}}, 0).ok());
  EXPECT_FALSE(check_size_expr(SizeExpr(kSizeStackLimit + 1, c(1)), 0).ok());
}

// What has a value must also pass the check that loading makes.
TEST(SizeExpr, MalformedOnesNeverCrash) {
  std::mt19937 random(1);
  int valued = 0;
  for (int round = 0; round < 20000; ++round) {
    SizeExpr e(random() % 12);
    for (SizeStep& step : e)
      step = {static_cast<SizeOp>(random() % 18), static_cast<int64_t>(random() % 5) - 1};
    const std::vector<int64_t> symbols{3, 0};
    const std::optional<int64_t> value = evaluate(e, symbols);
    if (value) {
      ++valued;
      EXPECT_TRUE(check_size_expr(e, 2).ok()) << to_string(e, {"a", "b"});
    }
  }
  EXPECT_GT(valued, 100);
}

TEST(SizeExpr, PrintsInfix) {
  const std::vector<std::string> names{"batch", "seq"};
  EXPECT_EQ(to_string({s(0), s(1), c(1), op(SizeOp::kAdd), op(SizeOp::kMul)}, names),
            "batch * (seq + 1)");
  EXPECT_EQ(to_string({s(0), c(4), op(SizeOp::kMin)}, names), "min(batch, 4)");
  EXPECT_EQ(to_string({c(7)}, names), "7");
}

}  // namespace
}  // namespace tilewright
