#include "tests/autotune/replay/base_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace tilewright::autotune {

namespace {

constexpr BoostingOptions kOptions{.trees = 80, .depth = 5, .rate = 0.1F, .least_weight = 8};
constexpr size_t kMembers = 4;

struct Sample {
  std::vector<float> values, targets;
  Rows rows() const { return {values, 2 * feature_names().size()}; }
};
double log_expected(const ReplayTable& t, size_t i) {
  return std::log(t.forms[i].expected_us / t.forms[0].expected_us);
}
void add(Sample& s, const ReplayTable& t) {
  for (size_t i = 0; i < t.forms.size(); ++i) {
    const Features row = relative_features(t.forms[i].features, t.forms[0].features);
    s.values.insert(s.values.end(), row.begin(), row.end());
    s.targets.push_back(static_cast<float>(std::log(t.forms[i].ratio()) - log_expected(t, i)));
  }
}
Result<Ensemble> fit(const Boosting& boosting, const std::vector<ReplayTable>& tables,
                     const std::set<std::string>& without) {
  Sample s;
  for (const ReplayTable& t : tables)
    if (!without.count(t.rule)) add(s, t);
  if (s.targets.empty()) return invalid("no measurements are left to learn from");
  return fit_ensemble(boosting, s.rows(), s.targets, {}, kOptions, kMembers);
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0, end = 0; i < order.size(); i = end) {  // equal values share their mean rank
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) rank[order[k]] = static_cast<double>(i + end - 1) / 2;
  }
  return rank;
}

}  // namespace

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double middle = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

Result<Ensemble> fit_base_model(const Boosting& boosting, const std::vector<ReplayTable>& tables,
                                const std::string& without) {
  std::set<std::string> rules;
  for (const ReplayTable& t : tables)
    if (t.rule != without) rules.insert(t.rule);
  // Errors over deviations, of rules that were left out: the median of what each rule asks for, so
  // that none of them has the say.
  std::vector<double> scales;
  for (const std::string& rule : rules) {
    if (rules.size() < 2) break;
    TW_ASSIGN(const Ensemble others, fit(boosting, tables, {without, rule}));
    std::vector<double> errors;
    for (const ReplayTable& t : tables) {
      if (t.rule != rule) continue;
      Sample s;
      add(s, t);
      TW_ASSIGN(const std::vector<Outlook> outlooks, others.predict(s.rows()));
      for (size_t i = 1; i < outlooks.size(); ++i)
        errors.push_back(std::abs(outlooks[i].mean - s.targets[i]) /
                         (outlooks[i].deviation / others.scale));
    }
    std::sort(errors.begin(), errors.end());
    if (!errors.empty()) scales.push_back(errors[errors.size() * 9 / 10] / 1.645);
  }
  TW_ASSIGN(Ensemble base, fit(boosting, tables, {without}));
  std::sort(scales.begin(), scales.end());
  if (!scales.empty()) base.scale = std::max(base.scale, scales[scales.size() / 2]);
  return base;
}

Result<Transfer> transfer_to(const Ensemble& base, const ReplayTable& table) {
  Sample s;
  add(s, table);
  TW_ASSIGN(const std::vector<Outlook> outlooks, base.predict(s.rows()));
  std::vector<double> measured, expected, learned;
  double covered = 0;
  for (size_t i = 1; i < outlooks.size(); ++i) {
    measured.push_back(table.forms[i].ratio());
    expected.push_back(log_expected(table, i));
    learned.push_back(log_expected(table, i) + outlooks[i].mean);
    covered += std::abs(outlooks[i].mean - s.targets[i]) < 1.645 * outlooks[i].deviation;
  }
  if (measured.size() < 2) return invalid("fewer than two forms", table.name);
  return Transfer{.analytic = spearman(expected, measured),
                  .learned = spearman(learned, measured),
                  .covered = covered / static_cast<double>(measured.size())};
}

}  // namespace tilewright::autotune
