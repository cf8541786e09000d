#include "autotune/prospects.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright::autotune {

namespace {

// Of the standard normal distribution.
double density(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }
double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

double expected_improvement(const Outlook& o, double best) {
  if (o.deviation <= 0) return std::max(0.0, best - o.mean);
  const double z = (best - o.mean) / o.deviation;
  return (best - o.mean) * below(z) + o.deviation * density(z);
}

void Prospects::add(Prospect p) { prospects_.push_back(std::move(p)); }

// Brings outlooks up to date; false where there is no model, or it failed, which costs its help alone.
bool Prospects::look() {
  if (!model_ || !model_->learns() || prospects_.empty()) return false;
  const auto version = model_->version();
  if (!version.ok()) return false;
  if (*version == version_ && outlooks_.size() == prospects_.size()) return true;
  std::vector<float> values;
  for (const Prospect& p : prospects_)
    values.insert(values.end(), p.features.begin(), p.features.end());
  auto outlooks = model_->predict({values, prospects_[0].features.size()});
  if (!outlooks.ok()) return false;
  outlooks_ = std::move(*outlooks);
  for (size_t i = 0; i < outlooks_.size(); ++i) outlooks_[i].mean += prospects_[i].log_expected;
  if (*version != version_) taken_.clear();
  version_ = *version;
  return true;
}

// The part of the features that differ from those of the form most like it, of those that the model
// knows nothing of yet: alike forms tell the same.
double Prospects::novelty(const Features& f) const {
  double least = 1;
  for (const Features& t : taken_) {
    double differ = 0;
    for (size_t i = 0; i < f.size(); ++i) differ += f[i] != t[i];
    least = std::min(least, std::min(1.0, 4 * differ / static_cast<double>(f.size())));
  }
  return least;
}

std::optional<size_t> Prospects::take(double best) {
  if (prospects_.empty()) return std::nullopt;
  const bool known = look();
  size_t first = 0;
  double most = -1e300;
  for (size_t i = 0; i < prospects_.size(); ++i) {
    const double value = known ? expected_improvement(outlooks_[i], best) *
                                     (0.5 + 0.5 * novelty(prospects_[i].features))
                               : -prospects_[i].log_expected;
    if (value > most) most = value, first = i;
  }
  const size_t id = prospects_[first].id;
  taken_.push_back(std::move(prospects_[first].features));
  prospects_.erase(prospects_.begin() + static_cast<long>(first));
  if (known) outlooks_.erase(outlooks_.begin() + static_cast<long>(first));
  return id;
}

double Prospects::gap(double best) {
  if (!look()) return prospects_.empty() ? 0 : 1;
  constexpr double kDoubt = 0.05;
  const auto chance = [&](double faster) {
    double sum = 0;
    for (const Outlook& o : outlooks_)
      sum += below((best + std::log1p(-faster) - o.mean) / o.deviation);
    return sum;
  };
  double low = 0, high = 0.999;
  if (chance(low) <= kDoubt) return 0;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (chance(middle) <= kDoubt ? high : low) = middle;
  }
  return high;
}

}  // namespace tilewright::autotune
