// Where a search looks next: what it does with the forms that it knows.
#include <algorithm>

#include "autotune/search/search.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {

using passes::Answers;
using passes::Decision;

namespace {

constexpr int kMixtures = 16;
constexpr double kNear = 1.05;  // of the best form's time: its neighbours may be faster
constexpr size_t kMostNear = 6;

}  // namespace

std::vector<Decision> Search::open_decisions(const Answers& answers) const {
  auto choice = passes::choose_trace(
      kernel_, {.machine = &options_.machine, .constants = constants_, .answers = answers});
  if (!choice.ok()) return {};
  std::erase_if(choice->decisions, [&](const Decision& d) {
    return d.values.size() < 2 || (search_.same_bits && d.bits != passes::Bits::kKept);
  });
  return std::move(choice->decisions);
}

bool Search::add_more() {
  while (unweighed_.empty())
    if (!mixed_)
      add_mixtures();
    else if (!add_neighbours_of_near())
      return false;
  return true;
}

// In random order, so that the first ones say something of all decisions.
void Search::add_neighbours(const Answers& answers) {
  expanded_.insert(answers);
  std::vector<Answers> neighbours;
  for (const Decision& d : open_decisions(answers))
    for (const int64_t value : d.values) {
      if (value == d.answer) continue;
      neighbours.push_back(answers);
      neighbours.back()[d.name] = value;
    }
  std::shuffle(neighbours.begin(), neighbours.end(), random_);
  unweighed_.insert(unweighed_.begin(), neighbours.begin(), neighbours.end());
}

// Two answers may be worth something together and nothing each: where one alone does no harm, the
// other is tried from there.
bool Search::add_neighbours_of_near() {
  if (near_ == kMostNear) return false;
  for (const Candidate& c : measured_)
    if (c.ratio < kNear * best_.ratio && !expanded_.count(c.answers)) {
      ++near_;
      add_neighbours(Answers(c.answers));
      return true;
    }
  return false;
}

void Search::add_mixtures() {
  mixed_ = true;
  const std::vector<Decision> open = open_decisions(best_.answers);
  if (open.size() < 2) return;
  for (int i = 0; i < kMixtures; ++i) {
    Answers answers = best_.answers;
    for (int changed = 0; changed < 2; ++changed) {
      const Decision& d = open[below(open.size())];
      answers[d.name] = d.values[below(d.values.size())];
    }
    unweighed_.push_back(std::move(answers));
  }
}

// Answers of two of the best forms, one of them changed.
void Search::add_descendant() {
  const Candidate &a = measured_[below(measured_.size())], &b = measured_[below(measured_.size())];
  Answers answers = a.answers;
  for (const auto& [name, value] : b.answers)
    if (below(2) == 0) answers[name] = value;
  const std::vector<Decision> open = open_decisions(best_.answers);
  if (open.empty()) return;
  const Decision& d = open[below(open.size())];
  answers[d.name] = d.values[below(d.values.size())];
  unweighed_.push_front(std::move(answers));
}

}  // namespace tilewright::autotune
