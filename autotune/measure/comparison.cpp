#include "autotune/measure/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/core/check.h"

namespace tilewright::autotune {

namespace {

double median(std::vector<double> sorted) {
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return n == 0 ? 0 : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

// The largest k with P(fewer than k of n fair coins show heads) <= 2.5 %.
size_t bound_of_median(size_t n) {
  double ways = std::exp2(-static_cast<double>(n)), sum = ways;
  size_t k = 0;
  while (k < n && sum <= 0.025) {
    ways *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    sum += ways;
    ++k;
  }
  return k;
}

}  // namespace

Comparison compare(std::span<const double> a, std::span<const double> b) {
  TW_CHECK(a.size() == b.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(b[i] / a[i]);
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size(), k = bound_of_median(n);
  const bool known = k > 0;
  const double ratio = n == 0 ? 1 : median(ratios);
  return {.ratio = ratio,
          .low = known ? ratios[k - 1] : 0,
          .high = known ? ratios[n - k] : std::numeric_limits<double>::infinity(),
          .pairs = n,
          .a = median({a.begin(), a.end()}),
          .b = median({b.begin(), b.end()}),
          .worst = ratio};
}

void PairedSums::add(std::vector<OfSize> sizes) {
  sizes_.resize(std::max(sizes_.size(), sizes.size()));
  for (size_t s = 0; s < sizes.size(); ++s) {
    if (sizes[s].a.size() != sizes[s].b.size()) continue;  // not called in one of the forms
    sizes_[s].a.insert(sizes_[s].a.end(), sizes[s].a.begin(), sizes[s].a.end());
    sizes_[s].b.insert(sizes_[s].b.end(), sizes[s].b.begin(), sizes[s].b.end());
  }
}

Comparison PairedSums::compare() const {
  std::vector<Comparison> all;
  for (const OfSize& s : sizes_) all.push_back(autotune::compare(s.a, s.b));
  return over_sizes(all);
}

Comparison against(Comparison c, double us, double ratio) {
  for (double* x : {&c.ratio, &c.low, &c.high, &c.worst}) *x *= ratio;
  c.a = us;
  c.b = us * c.ratio;
  return c;
}

Comparison over_sizes(std::span<const Comparison> sizes) {
  Comparison all{.ratio = 0, .low = 0, .high = 0, .worst = 0};  // logarithms, for now
  double n = 0;
  for (const Comparison& c : sizes) {
    if (c.pairs == 0) continue;
    ++n;
    all.ratio += std::log(c.ratio), all.low += std::log(c.low), all.high += std::log(c.high);
    all.a += c.a, all.b += c.b;
    all.pairs = n == 1 ? c.pairs : std::min(all.pairs, c.pairs);
    all.worst = std::max(all.worst, c.ratio);
  }
  if (n == 0) return compare({}, {});
  for (double* x : {&all.ratio, &all.low, &all.high}) *x = std::exp(*x / n);
  all.a /= n, all.b /= n;
  return all;
}

}  // namespace tilewright::autotune
