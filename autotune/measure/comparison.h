// Two forms timed side by side: which is faster, and how sure that is. Runs of one machine are not
// normally distributed (a stolen core, another clock), so nothing here assumes that.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright::autotune {

struct Comparison {
  // Of the times of b to those of a: the median over all pairs, and the bounds between which it lies
  // with 95 % confidence, by the order of the pairs alone (Conover, "Practical Nonparametric
  // Statistics", on quantiles). Few pairs: 0 and infinity.
  double ratio = 1, low = 0, high = 0;
  size_t pairs = 0;
  // Seconds, or whatever both were measured in: medians.
  double a = 0, b = 0;
  // Of several sizes: the ratio where b does worst.
  double worst = 1;
  // At no size is it slower by more than what medians differ by anyway.
  bool b_is_faster() const { return high < 1 && worst < 1.005; }
};

// Pair k are a[k] and b[k], measured one right after the other; all positive, as many of each.
Comparison compare(std::span<const double> a, std::span<const double> b);

// Of the time of what a form replaces: what is less is no gain.
inline constexpr double kWorthwhile = 0.99;
// A kernel of 20 us takes 5 % more or less from process to process, wherever its operands happen to lie:
// what gained 2 % at all placements of one, beside other work, lost 6 % in another, and a form raced
// against itself won by 3 % in 3 % of the races. Such kernels have to gain more, and to do so again.
constexpr bool is_short(double us) { return us < 50; }
// The ratio below which a form is kept, for a kernel of which a call takes so many microseconds.
constexpr double worth_keeping(double us) { return is_short(us) ? 0.97 : kWorthwhile; }
// The measurements that must all say so, each at placements of its own.
constexpr int confirmations(double us) { return is_short(us) ? 2 : 1; }

// c, but with a third form for a: one that takes `us`, of which a takes the part `ratio`.
Comparison against(Comparison c, double us, double ratio);

// The same two forms at several sizes, each of which counts alike: geometric means of ratios and bounds,
// means of the times. Where nothing was measured does not count.
Comparison over_sizes(std::span<const Comparison> sizes);

// Pairs of times of the same two forms, at each size; more are added until they say enough.
class PairedSums {
 public:
  struct OfSize {
    std::vector<double> a, b;
  };
  void add(std::vector<OfSize> sizes);
  void clear() { sizes_.clear(); }
  Comparison compare() const;

 private:
  std::vector<OfSize> sizes_;
};

}  // namespace tilewright::autotune
