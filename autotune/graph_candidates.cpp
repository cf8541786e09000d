#include "autotune/graph_candidates.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tilewright::autotune {

using passes::Answers;
using passes::Decision;

namespace {

constexpr double kHopeless = 1.6;  // as much as usual, by the passes' own costs

std::string label(const Decision& d, int64_t value) {
  for (size_t i = 0; i < d.labels.size(); ++i)
    if (d.values[i] == value) return d.labels[i];
  return std::to_string(value);
}

}  // namespace

Answers merged(Answers a, const Answers& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

std::deque<GraphCandidate> graph_candidates(const GraphForm& best, bool same_bits) {
  std::map<std::string, std::vector<const Decision*>> alike;
  for (const Decision& d : best.decisions)
    if (!same_bits || d.bits == passes::Bits::kKept)
      alike[d.alike.empty() ? d.name : d.alike].push_back(&d);
  std::deque<GraphCandidate> candidates;
  for (const auto& [what, decisions] : alike) {
    const Decision& first = *decisions[0];
    const auto cost = [&](int64_t value) {
      const auto at = std::find(first.values.begin(), first.values.end(), value);
      const auto n = static_cast<size_t>(at - first.values.begin());
      return n < first.microseconds.size() ? first.microseconds[n] : 0;
    };
    for (const int64_t value : first.values) {
      if (value == first.answer || cost(value) > kHopeless * cost(first.answer)) continue;
      GraphCandidate c{.alike = what, .answer = label(first, value)};
      for (const Decision* d : decisions) {
        c.answers[d->name] = value;
        c.before[d->name] = d->answer;
      }
      candidates.push_back(std::move(c));
    }
  }
  return candidates;
}

}  // namespace tilewright::autotune
