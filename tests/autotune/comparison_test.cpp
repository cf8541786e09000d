// Which of two forms is faster, by pairs of times: bounds that hold as often as they say.
#include "autotune/measure/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tilewright::autotune {
namespace {

TEST(Comparison, ShortKernelsHaveToGainMore) {
  EXPECT_LT(worth_keeping(20), worth_keeping(2000));
  EXPECT_LT(worth_keeping(2000), 1);
}
TEST(Comparison, FewPairsSayNothing) {
  const std::vector<double> a(5, 2.0), b(5, 1.0);
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.ratio, 0.5);
  EXPECT_EQ(c.low, 0);
  EXPECT_TRUE(std::isinf(c.high));
  EXPECT_FALSE(c.b_is_faster());
  EXPECT_EQ(compare({}, {}).pairs, 0u);
}
TEST(Comparison, SixPairsThatAgreeSayIt) {
  const std::vector<double> a{2, 2, 2, 2, 2, 2}, b{1, 1.1, 1.2, 1.3, 1.4, 1.5};
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.low, 0.5);
  EXPECT_EQ(c.high, 0.75);
  EXPECT_NEAR(c.ratio, 0.625, 1e-12);
  EXPECT_TRUE(c.b_is_faster());
}
TEST(Comparison, AStolenCoreHasNoSay) {
  std::vector<double> a(20, 1.0), b(20, 0.9);
  b[3] = b[11] = 50;
  EXPECT_TRUE(compare(a, b).b_is_faster());
}
// Faster at most sizes is not enough, and what was not measured at a size says nothing of it.
TEST(Comparison, OverSizesNoneMayBeSlower) {
  const auto of = [](double ratio) {
    const std::vector<double> a(9, 1.0), b(9, ratio);
    return compare(a, b);
  };
  const Comparison all = over_sizes(std::vector{of(0.5), of(0.8), of(1.25)});
  EXPECT_NEAR(all.ratio, std::cbrt(0.5), 1e-12);
  EXPECT_NEAR(all.high, std::cbrt(0.5), 1e-12);
  EXPECT_EQ(all.worst, 1.25);
  EXPECT_EQ(all.pairs, 9u);
  EXPECT_NEAR(all.b, (0.5 + 0.8 + 1.25) / 3, 1e-12);
  EXPECT_FALSE(all.b_is_faster());
  EXPECT_TRUE(over_sizes(std::vector{of(0.5), of(0.8), of(1)}).b_is_faster());
  const Comparison one = over_sizes(std::vector{compare({}, {}), of(0.5)});
  EXPECT_EQ(one.ratio, 0.5);
  EXPECT_TRUE(one.b_is_faster());
  EXPECT_EQ(over_sizes(std::vector{compare({}, {})}).pairs, 0u);
  const Comparison few =
      over_sizes(std::vector{compare(std::vector{1.0}, std::vector{0.5}), of(0.5)});
  EXPECT_EQ(few.low, 0);
  EXPECT_FALSE(few.b_is_faster());
}
// The true median lies outside of the bounds in at most 5 % of all cases, whatever the distribution.
TEST(Comparison, BoundsHoldAsOftenAsTheySay) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.2);
  constexpr int kCases = 4000;
  for (const size_t n : {6, 8, 15, 40}) {
    int outside = 0;
    for (int i = 0; i < kCases; ++i) {
      std::vector<double> a(n), b(n);
      for (size_t k = 0; k < n; ++k) a[k] = noise(random), b[k] = noise(random);
      const Comparison c = compare(a, b);
      outside += c.low > 1 || c.high < 1;
    }
    EXPECT_LE(outside, kCases * 0.06) << n;
  }
}

}  // namespace
}  // namespace tilewright::autotune
