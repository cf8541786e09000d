#include "autotune/search/prospects.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright::autotune {

namespace {

// Of the standard normal distribution.
double density(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }
double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// Trees say the same of all forms between two that they saw, and beyond the last one. So forms that
// are unlike all that were measured are less sure than these: by up to kFar, from kReach on.
constexpr double kFar = 0.2, kReach = 0.1;
Outlook with_distance(const Outlook& o, double distance) {
  return {o.mean, std::hypot(o.deviation, kFar * std::min(1.0, distance / kReach))};
}

// The part of the features that differ, by half a unit or more; less counts in part. Rows have the
// differences to the usual form behind the features themselves.
double distance(const Features& a, const Features& b) {
  double sum = 0;
  for (size_t i = a.size() / 2; i < a.size(); ++i)
    sum += std::min(1.0, 2 * static_cast<double>(std::abs(a[i] - b[i])));
  return 2 * sum / static_cast<double>(a.size());
}
double from_usual(const Features& a) { return distance(a, Features(a.size())); }

}  // namespace

double expected_improvement(const Outlook& o, double best) {
  if (o.deviation <= 0) return std::max(0.0, best - o.mean);
  const double z = (best - o.mean) / o.deviation;
  return (best - o.mean) * below(z) + o.deviation * density(z);
}

void Prospects::add(Prospect p) {
  double nearest = from_usual(p.features);
  for (const Features& t : taken_) nearest = std::min(nearest, distance(p.features, t));
  open_.push_back({std::move(p), {}, nearest});
}

// Brings outlooks up to date; false where there is no model, or it failed, which costs its help alone.
bool Prospects::look() {
  if (!model_ || !model_->learns()) return false;
  const auto version = model_->version();
  if (!version.ok()) return false;
  std::vector<float> values;
  std::vector<Open*> asked;
  for (Open& o : open_) {
    if (o.known && *version == version_) continue;
    asked.push_back(&o);
    values.insert(values.end(), o.prospect.features.begin(), o.prospect.features.end());
  }
  version_ = *version;
  if (asked.empty()) return true;
  const auto outlooks = model_->predict({values, values.size() / asked.size()});
  if (!outlooks.ok()) return false;
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i]->outlook = (*outlooks)[i];
    asked[i]->outlook.mean += asked[i]->prospect.log_expected;
    asked[i]->known = true;
  }
  return true;
}

std::optional<size_t> Prospects::take(double best) {
  if (open_.empty()) return std::nullopt;
  const bool known = look();
  const auto value = [&](const Open& o) {
    if (!known) return -o.prospect.log_expected;
    return expected_improvement(with_distance(o.outlook, o.distance), best);
  };
  size_t first = 0;
  double most = value(open_[0]);
  for (size_t i = 1; i < open_.size(); ++i)
    if (const double v = value(open_[i]); v > most) most = v, first = i;
  const size_t id = open_[first].prospect.id;
  taken_.push_back(std::move(open_[first].prospect.features));
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(first));
  for (Open& o : open_)
    o.distance = std::min(o.distance, distance(o.prospect.features, taken_.back()));
  return id;
}

double Prospects::gap(double best) {
  if (open_.empty()) return 0;
  if (!look()) return 1;
  constexpr double kDoubt = 0.05;
  const auto chance = [&](double faster) {
    double sum = 0;
    for (const Open& o : open_) {
      const Outlook outlook = with_distance(o.outlook, o.distance);
      sum += below((best + std::log1p(-faster) - outlook.mean) / outlook.deviation);
    }
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
