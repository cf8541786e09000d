#include <algorithm>
#include <cmath>
#include <random>

#include "autotune/learn/cost_model.h"

namespace tilewright::autotune {

namespace {

constexpr double kMeasured = 0.02;  // a measurement's own deviation, and what no feature tells
constexpr double kUnfitted = 1;     // the scale that nothing speaks against
constexpr size_t kSupposed = 10;    // as many measurements speak for it

double deviation(double between) { return std::sqrt(between * between + kMeasured * kMeasured); }

// Weights of a bootstrap sample: how often each row was drawn.
std::vector<float> drawn(size_t rows, std::mt19937& random) {
  std::vector<float> weights(rows);
  for (size_t i = 0; i < rows; ++i) ++weights[random() % rows];
  return weights;
}

// Errors over deviations, of rows by the members that did not see them: the scale by which 90 % of
// them lie in 90 % intervals (conformal prediction: Vovk et al., 2005, with out-of-bag errors). A few
// supposed errors keep the first fits, which have next to none, from being sure.
double calibrated(std::vector<double> errors) {
  constexpr double kNinety = 1.645;
  // The absolute values of a normal distribution, by their order.
  constexpr double kNormal[kSupposed] = {0.06, 0.19, 0.32, 0.45, 0.60,
                                         0.76, 0.93, 1.15, 1.44, 1.96};
  for (const double n : kNormal) errors.push_back(kUnfitted * n);
  std::sort(errors.begin(), errors.end());
  return std::max(1.0, errors[errors.size() * 9 / 10] / kNinety);
}

}  // namespace

Result<std::vector<Outlook>> Ensemble::predict(const Rows& rows) const {
  std::vector<Outlook> all(rows.count());
  const auto n = static_cast<double>(members.size());
  for (const auto& member : members) {
    TW_ASSIGN(const std::vector<float> values, member->predict(rows));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].mean += values[i] / n;
      all[i].deviation += static_cast<double>(values[i]) * values[i] / n;
    }
  }
  for (Outlook& o : all)
    o.deviation = scale * deviation(std::sqrt(std::max(0.0, o.deviation - o.mean * o.mean)));
  return all;
}

Result<Ensemble> fit_ensemble(const Boosting& boosting, const Rows& rows,
                              std::span<const float> targets, std::span<const float> starts,
                              const BoostingOptions& options, size_t members) {
  Ensemble ensemble;
  std::mt19937 random(options.seed);
  const size_t n = rows.count();
  // Of each row, by the members that did not see it.
  std::vector<double> sum(n), squares(n), count(n);
  for (size_t m = 0; m < members; ++m) {
    const std::vector<float> weights = drawn(n, random);
    BoostingOptions own = options;
    own.seed = options.seed * 1000 + static_cast<uint32_t>(m);
    TW_ASSIGN(std::unique_ptr<Trees> trees, boosting.fit(rows, targets, weights, starts, own));
    TW_ASSIGN(const std::vector<float> values, trees->predict(rows));
    for (size_t i = 0; i < n; ++i) {
      if (weights[i] > 0) continue;
      const double value = values[i];
      sum[i] += value, squares[i] += value * value, count[i] += 1;
    }
    ensemble.members.push_back(std::move(trees));
  }
  std::vector<double> errors;
  for (size_t i = 0; i < n; ++i) {
    if (count[i] < 2) continue;
    const double mean = sum[i] / count[i];
    const double between = std::sqrt(std::max(0.0, squares[i] / count[i] - mean * mean));
    const double target = targets[i] - (starts.empty() ? 0 : starts[i]);
    errors.push_back(std::abs(target - mean) / deviation(between));
  }
  ensemble.scale = calibrated(std::move(errors));
  return ensemble;
}

}  // namespace tilewright::autotune
