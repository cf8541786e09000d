// Extents that only the run knows, joined by numpy's rule: for all values that broadcast, the expression
// has the value that numpy gives, in whatever order and however often extents are joined.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ir/graph/broadcast.h"
#include "ir/interpreter/evaluate.h"
#include "ir/loops/linear.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kExtents[] = {0, 1, 2, 3, 7};

// Symbols, numbers and sums of both.
class DrawnExtents {
 public:
  explicit DrawnExtents(uint64_t seed) : random_(seed) {}
  Expr draw() {
    const Var& v = symbols_[random_() % symbols_.size()];
    switch (random_() % 6) {
      case 0: return kExtents[random_() % std::size(kExtents)];
      case 1: return Expr(v) + Expr(1);
      case 2: return Expr(v) * Expr(2);
      default: return v;
    }
  }
  // Calls f with each assignment of extents to the symbols.
  void for_each_value(const std::function<void(const IntValues&)>& f) const {
    IntValues values;
    const std::function<void(size_t)> next = [&](size_t k) {
      if (k == symbols_.size()) return f(values);
      for (const int64_t e : kExtents) {
        values[symbols_[k].get()] = e;
        next(k + 1);
      }
    };
    next(0);
  }

 private:
  std::mt19937_64 random_;
  const std::vector<Var> symbols_{Var("n"), Var("m"), Var("k")};
};

// numpy's result; nothing where the extents do not broadcast.
std::optional<int64_t> numpy(const std::vector<int64_t>& extents) {
  int64_t joined = 1;
  for (const int64_t e : extents) {
    if (joined != 1 && e != 1 && e != joined) return std::nullopt;
    joined = e == 1 ? joined : e;
  }
  return joined;
}

TEST(Broadcast, JoinsAsNumpyDoes) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    DrawnExtents drawn(seed);
    std::vector<Expr> extents;
    for (uint64_t k = 0; k < 2 + seed % 3; ++k) extents.push_back(drawn.draw());
    std::optional<Expr> joined = extents[0];
    for (size_t k = 1; joined && k < extents.size(); ++k)
      joined = broadcast_extent(*joined, extents[k]);
    std::string text;
    for (const Expr& e : extents) text += to_text(e) + " ";
    SCOPED_TRACE(text + "-> " + (joined ? to_text(*joined) : "nothing"));
    bool any = false;
    drawn.for_each_value([&](const IntValues& values) {
      std::vector<int64_t> numbers;
      for (const Expr& e : extents) numbers.push_back(evaluate_int(e, values).value());
      const auto expected = numpy(numbers);
      any |= expected.has_value();
      if (!expected || !joined) return;
      EXPECT_EQ(evaluate_int(*joined, values), *expected);
      for (size_t k = 0; k < extents.size(); ++k)
        if (numbers[k] != *expected)
          EXPECT_TRUE(may_repeat(extents[k], *joined) || numbers[k] == 1);
    });
    EXPECT_TRUE(joined || !any);
    // What is a part of the result changes nothing.
    for (size_t k = 0; joined && k < extents.size(); ++k)
      EXPECT_TRUE(same_expr(broadcast_extent(*joined, extents[k]).value(), *joined)) << k;
  }
}

TEST(Broadcast, WhatIsKnownCostsNothing) {
  const Var n("n"), m("m");
  EXPECT_TRUE(same_expr(*broadcast_extent(n, n), n));
  EXPECT_TRUE(same_expr(*broadcast_extent(n, Expr(1)), n));
  EXPECT_TRUE(same_expr(*broadcast_extent(n, Expr(7)), Expr(7)));
  EXPECT_TRUE(same_expr(*broadcast_extent(n, n * Expr(2) + Expr(2)), n * Expr(2) + Expr(2)));
  EXPECT_FALSE(broadcast_extent(Expr(7), Expr(5)));
  EXPECT_FALSE(may_repeat(n, n));
  EXPECT_FALSE(may_repeat(Expr(1), n));
  EXPECT_FALSE(may_repeat(n + Expr(2), m));
  EXPECT_TRUE(may_repeat(n, m));
  EXPECT_TRUE(may_repeat(n, Expr(7)));
}

}  // namespace
}  // namespace tilewright::ir
