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
Comparison Placements::kernels(const std::set<std::string>& names) const {
  return over_placements(each, [&](const PairedTimes& t) { return t.kernels(names); });
}
Comparison Placements::nodes(const std::set<std::string>& of_a,
                             const std::set<std::string>& of_b) const {
  return over_placements(each, [&](const PairedTimes& t) { return t.nodes(of_a, of_b); });
}

// Sessions get the places that those before gave back: pieces of memory of some size in between shift
// them, and who is made first is drawn, since the first one gets the better or the worse of them.
Result<Placements> run_at_placements(const MakeSession& a, const MakeSession& b, InputSets inputs,
                                     const PairedOptions& options, std::mt19937& random) {
  constexpr size_t kShift = 1 << 16;  // bytes, at most
  Placements all;
  std::unique_ptr<Session> of_a, of_b;
  std::vector<std::vector<char>> shifts;
  for (size_t p = 0; p < kPlacements && !(p > 0 && options.stop && options.stop()); ++p) {
    of_a.reset(), of_b.reset();
    shifts.emplace_back(random() % kShift);
    const bool a_first = random() % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      TW_ASSIGN((is_a ? of_a : of_b), (is_a ? a : b)());
    }
    TW_ASSIGN(PairedTimes times, run_in_turn(*of_a, *of_b, inputs, options, random));
    all.each.push_back(std::move(times));
  }
  return all;
}

}  // namespace tilewright::autotune
