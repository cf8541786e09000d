#include "autotune/measure/placements.h"

#include <algorithm>

namespace tilewright::autotune {

namespace {

template <typename Compare>
Comparison over_placements(const std::vector<PairedTimes>& each, Compare&& compare_at) {
  std::vector<Comparison> found;
  for (const PairedTimes& t : each)
    if (Comparison c = compare_at(t); c.pairs > 0) found.push_back(c);
  const auto column = [&](double Comparison::* field) {
    std::vector<double> values;
    for (const Comparison& c : found) values.push_back(c.*field);
    return values;
  };
  const std::vector<double> ones(found.size(), 1.0);
  Comparison all = compare(ones, column(&Comparison::ratio));
  all.worst = compare(ones, column(&Comparison::worst)).ratio;
  all.a = compare(ones, column(&Comparison::a)).ratio;
  all.b = all.a * all.ratio;
  return all;
}

}  // namespace

Comparison Placements::runs() const {
  return over_placements(each, [](const PairedTimes& t) { return t.runs(); });
}
Comparison Placements::kernel(const std::string& name) const {
  return over_placements(each, [&](const PairedTimes& t) { return t.kernel(name); });
}
Comparison Placements::nodes(const std::set<std::string>& of_a,
                             const std::set<std::string>& of_b) const {
  return over_placements(each, [&](const PairedTimes& t) { return t.nodes(of_a, of_b); });
}

// The sessions before are there until the next are made, and a piece of memory of some size with them:
// else these would get the very places that were given back.
Result<Placements> run_at_placements(const MakeSession& a, const MakeSession& b, InputSets inputs,
                                     const PairedOptions& options, std::mt19937& random) {
  constexpr size_t kShift = 1 << 16;  // bytes, at most
  Placements all;
  std::unique_ptr<Session> of_a, of_b;
  std::vector<std::vector<char>> shifts;
  for (size_t p = 0; p < kPlacements && !(p > 0 && options.stop && options.stop()); ++p) {
    shifts.emplace_back(random() % kShift);
    TW_ASSIGN(of_a, a());
    TW_ASSIGN(of_b, b());
    TW_ASSIGN(PairedTimes times, run_in_turn(*of_a, *of_b, inputs, options, random));
    all.each.push_back(std::move(times));
  }
  return all;
}

}  // namespace tilewright::autotune
