// Laws of simplification: the same values, nothing left to simplify, bounds that hold.
#include "ir/loops/simplify.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ir/interpreter/evaluate.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

// x in [0, 7), y in [2, 7), z in [0, n), n a symbol.
class SimplifyLaws : public testing::TestWithParam<unsigned> {
 protected:
  SimplifyLaws() : random_(GetParam()) {
    ranges_.set(x_, Expr(7));
    ranges_.set(y_, Expr(2), Expr(5));
    ranges_.set(z_, n_);
  }
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Expr leaf() {
    switch (pick(6)) {
      case 0: return x_;
      case 1: return y_;
      case 2: return z_;
      case 3: return n_;
      default: return Expr(pick(17) - 6);
    }
  }
  Expr divisor() {
    switch (pick(8)) {
      case 0: return n_;
      case 1: return n_ + Expr(1);
      case 2: return y_;
      case 3: return Expr(-1 - pick(4));
      default: return Expr(1 + pick(12));
    }
  }
  Expr expr(int depth) {
    if (depth == 0 || pick(7) == 0) return leaf();
    const Expr a = expr(depth - 1);
    switch (pick(11)) {
      case 0:
      case 1: return a + expr(depth - 1);
      case 2: return a - expr(depth - 1);
      case 3:
      case 4: return a * Expr(pick(13) - 4);
      case 5: return a * leaf();
      case 6: return floordiv(a, divisor());
      case 7: return floormod(a, divisor());
      case 8: return pick(2) ? min(a, expr(depth - 1)) : max(a, expr(depth - 1));
      case 9: return pick(2) ? a / divisor() : binary(BinaryOp::kTruncMod, a, divisor());
      default: return select(condition(depth - 1), a, expr(depth - 1));
    }
  }
  Expr condition(int depth) {
    static constexpr BinaryOp kCompare[] = {BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt,
                                            BinaryOp::kGe, BinaryOp::kEq, BinaryOp::kNe};
    if (depth > 0 && pick(4) == 0) {
      const Expr a = condition(depth - 1), b = condition(depth - 1);
      return pick(2) ? logical_and(a, b) : logical_or(a, b);
    }
    return binary(kCompare[pick(6)], expr(depth), expr(depth));
  }
  IntValues values() {
    const int64_t n = 1 + pick(9);
    return {{n_.get(), n},
            {x_.get(), pick(7)},
            {y_.get(), 2 + pick(5)},
            {z_.get(), pick(static_cast<int>(n))}};
  }
  std::string shown(const IntValues& v) {
    return "x = " + std::to_string(v.at(x_.get())) + ", y = " + std::to_string(v.at(y_.get())) +
           ", z = " + std::to_string(v.at(z_.get())) + ", n = " + std::to_string(v.at(n_.get()));
  }
  template <typename Check>
  void for_values(const Expr& e, Check check) {
    for (int tries = 0; tries < 40; ++tries) {
      const IntValues v = values();
      if (auto value = evaluate_int(e, v)) check(v, *value);
      if (HasFailure()) return;
    }
  }

  std::mt19937 random_;
  Var x_{"x"}, y_{"y"}, z_{"z"}, n_{"n"};
  Ranges ranges_;
};

TEST_P(SimplifyLaws, SameValues) {
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const Expr e = i % 4 ? expr(1 + i % 5) : condition(3);
    const Expr simple = simplify(e, ranges_);
    for_values(e, [&](const IntValues& v, int64_t value) {
      EXPECT_EQ(evaluate_int(simple, v), std::optional(value))
          << to_text(e) << "\n-> " << to_text(simple) << "\n"
          << shown(v);
    });
  }
}

TEST_P(SimplifyLaws, NothingIsLeft) {
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const Expr e = expr(1 + i % 4), once = simplify(e, ranges_);
    EXPECT_EQ(to_text(simplify(once, ranges_)), to_text(once)) << to_text(e);
  }
}

TEST_P(SimplifyLaws, BoundsHold) {
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const Expr e = expr(1 + i % 5);
    const Interval range = interval(e, ranges_);
    const Expr low = lower_bound(e, ranges_), high = upper_bound(e, ranges_);
    for_values(e, [&](const IntValues& v, int64_t value) {
      if (range.low) { EXPECT_LE(*range.low, value) << to_text(e) << "\n" << shown(v); }
      if (range.high) { EXPECT_GE(*range.high, value) << to_text(e) << "\n" << shown(v); }
      if (const auto l = low ? evaluate_int(low, v) : std::nullopt) {
        EXPECT_LE(*l, value) << to_text(e) << " >= " << to_text(low) << "\n" << shown(v);
      }
      if (const auto h = high ? evaluate_int(high, v) : std::nullopt) {
        EXPECT_GE(*h, value) << to_text(e) << " <= " << to_text(high) << "\n" << shown(v);
      }
    });
  }
}

TEST_P(SimplifyLaws, WhatIsProvedIsTrue) {
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const Expr c = condition(2);
    if (!can_prove(c, ranges_)) continue;
    for_values(c, [&](const IntValues& v, int64_t value) {
      EXPECT_EQ(value, 1) << to_text(c) << "\n" << shown(v);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimplifyLaws, testing::Range(1u, 21u));

// With x in [0, 7), z in [0, n).
std::string simplified(const std::string& text) {
  Names names;
  names.create_symbols = true;
  auto e = parse_expr("x + z + n - x - z - n + (" + text + ")", names);
  EXPECT_TRUE(e.ok()) << e.error().to_string();
  Ranges ranges;
  ranges.set(names.vars.at("x"), Expr(7));
  ranges.set(names.vars.at("z"), names.vars.at("n"));
  return to_text(simplify(*e, ranges));
}

TEST(Simplify, DivisionAndModulo) {
  EXPECT_EQ(simplified("floordiv(x * 8, 8)"), "x");
  EXPECT_EQ(simplified("floordiv(y * 8 + x, 8)"), "y");
  EXPECT_EQ(simplified("floormod(y * 8 + x, 8)"), "x");
  EXPECT_EQ(simplified("floordiv(y, 4) * 4 + floormod(y, 4)"), "y");
  EXPECT_EQ(simplified("floordiv(floormod(y, 12), 4) * 8 + floormod(y, 4) * 2"),
            "floormod(y, 12) * 2");
  EXPECT_EQ(simplified("floordiv(y, 12) * 12 + floordiv(floormod(y, 12), 4) * 4 + floormod(y, 4)"),
            "y");
  EXPECT_EQ(simplified("floordiv(y * n + z, n)"), "y");
  EXPECT_EQ(simplified("floordiv(y, 12) * 12 + floormod(floordiv(y, 4), 3) * 4 + floormod(y, 4)"),
            "y");
  EXPECT_EQ(simplified("floormod(floordiv(y, 4), 3) * 8 + floormod(y, 4) * 2"),
            "floormod(y, 12) * 2");
  EXPECT_EQ(simplified("floordiv(y, 14) * 28 + floormod(floordiv(y, 7), 2) * 14"),
            "floordiv(y, 7) * 14");
  EXPECT_EQ(simplified("floormod(floordiv(y, 5), 3) * 4 + floormod(y, 4)"),
            "floormod(floordiv(y, 5), 3) * 4 + floormod(y, 4)");
  // Of a remainder by 14, terms that are multiples of it are gone.
  EXPECT_EQ(simplified("floordiv(floormod(y * 28 + w, 196), 14) * 28 + floormod(y * 28 + w, 14) * 2"),
            "floormod(y * 28 + w, 196) * 2");
  EXPECT_EQ(simplified("floormod(floordiv(y * 28 + w, 14), 5) * 14 + floormod(w - 14, 14)"),
            "floormod(y * 28 + w, 70)");
  EXPECT_EQ(simplified("floordiv(floormod(y * 27 + w, 196), 14) * 14 + floormod(w, 14)"),
            "floordiv(floormod(y * 27 + w, 196), 14) * 14 + floormod(w, 14)");
  EXPECT_EQ(simplified("floordiv(floormod(y * 28 + w + 3, 196), 14) * 14 + floormod(w, 14)"),
            "floordiv(floormod(y * 28 + w + 3, 196), 14) * 14 + floormod(w, 14)");
  EXPECT_EQ(simplified("floormod(y * n + z, n)"), "z");
  EXPECT_EQ(simplified("floordiv(floordiv(y, 3), 4)"), "floordiv(y, 12)");
  EXPECT_EQ(simplified("floormod(floormod(y, 12), 4)"), "floormod(y, 4)");
  EXPECT_EQ(simplified("floordiv(floordiv(y, 9) - 8, 8)"), "floordiv(y, 72) - 1");
  // Rounded up in two steps: as in one.
  EXPECT_EQ(simplified("floordiv(floordiv(y + 3, 4) + 7, 8)"), "floordiv(y + 31, 32)");
  EXPECT_EQ(simplified("floordiv(floordiv(y, 4) - 3, 8)"), "floordiv(y + 20, 32) - 1");
  EXPECT_EQ(simplified("floormod(floormod(y, 10) + 10, 5)"), "floormod(y, 5)");
  EXPECT_EQ(simplified("floordiv(x, 7)"), "0");
  EXPECT_EQ(simplified("floordiv(x - 7, 7)"), "-1");
  EXPECT_EQ(simplified("floormod(x - 7, 7)"), "x");
}
TEST(Simplify, NegativeDivisorsDecideNothingWrong) {
  EXPECT_EQ(simplified("max(floordiv(x, -2), 0)"), "0");
  EXPECT_EQ(simplified("max(floordiv(x, -2), -2)"), "max(floordiv(x, -2), -2)");
  EXPECT_EQ(simplified("max(floordiv(x, -2), -3)"), "floordiv(x, -2)");
}
// Two's complement, without undefined behaviour on the way.
TEST(Simplify, SmallestInteger) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(as_int(-Expr(low)), low);
  EXPECT_EQ(as_int(-int_imm(std::numeric_limits<int32_t>::min(), DType::kInt32)),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(as_int(simplify(-Expr(low))), low);
  const Var x("x");
  auto check = [&](const Expr& e, int64_t value) {
    const IntValues values{{x.get(), value}};
    EXPECT_EQ(evaluate_int(simplify(e), values), evaluate_int(e, values)) << to_text(e);
    interval(e);
  };
  for (int64_t v : {-1, 0, 1})
    for (const Expr& e : {Expr(low) - x, -(x + Expr(low)), x * Expr(low) - x}) check(e, v);
  // Quotients are simplified on the understanding that no sum in them overflows.
  for (const Expr& e : {floordiv(x * Expr(low) + Expr(low), Expr(6)),
                        floormod(x * Expr(low), Expr(12)), floordiv(Expr(low) + x, -x + Expr(-1))})
    check(e, 0);
}
TEST(Simplify, MinimumsAndConditions) {
  EXPECT_EQ(simplified("min(x, 6)"), "x");
  EXPECT_EQ(simplified("max(x, 6)"), "6");
  EXPECT_EQ(simplified("min(z, n)"), "z");
  EXPECT_EQ(simplified("max(z + 1, n + 1)"), "n + 1");
  EXPECT_EQ(simplified("i64(x < 7)"), "1");
  EXPECT_EQ(simplified("i64(z >= n)"), "0");
  EXPECT_EQ(simplified("i64(x == x + 1)"), "0");
  EXPECT_EQ(simplified("select(z < n, x, n)"), "x");
}

}  // namespace
}  // namespace tilewright::ir
