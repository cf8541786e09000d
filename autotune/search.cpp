#include "autotune/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "passes/price_decisions.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {

using passes::Answers;
using passes::Choice;
using passes::Decision;

namespace {

// A form that is expected to take so many times as long as the best one is not measured: costs are
// good to a factor of two, and of forms of one kernel better than that.
constexpr double kHopeless = 1.5;
constexpr int kMixtures = 16;

}  // namespace

Search::Search(ir::Kernel kernel, std::set<std::string> constants,
               const passes::LowerOptions& options, SearchOptions search)
    : kernel_(std::move(kernel)),
      constants_(std::move(constants)),
      options_(options),
      search_(search),
      random_(search.seed) {
  options_.find_schedule = nullptr;
}

Result<Search> Search::start(ir::Kernel kernel, std::set<std::string> constants,
                             const passes::LowerOptions& options, SearchOptions search) {
  Search s(std::move(kernel), std::move(constants), options, search);
  TW_ASSIGN(Choice choice, passes::choose_trace(s.kernel_, {.machine = &s.options_.machine,
                                                            .constants = s.constants_,
                                                            .answers = {}}));
  TW_ASSIGN(const passes::LoopCost cost, passes::cost_of(s.kernel_, s.constants_, s.options_));
  s.usual_ = {{}, std::move(choice.trace), cost.total()};
  s.best_ = s.usual_;
  s.seen_.insert(passes::to_string(s.usual_.schedule));
  if (!s.search_.from.empty())
    if (auto known = s.form(s.search_.from)) s.best_ = std::move(*known);
  s.add_neighbours();
  return s;
}

std::optional<Candidate> Search::next() {
  if (waiting_.empty() && !mixed_) add_mixtures();
  if (waiting_.empty()) return std::nullopt;
  Candidate c = std::move(waiting_.back());
  waiting_.pop_back();
  return c;
}

void Search::accept(Candidate candidate) {
  best_ = std::move(candidate);
  mixed_ = false;
  add_neighbours();
}

// Nothing when no legal schedule follows, it is none that is new, or it is hopeless.
std::optional<Candidate> Search::form(Answers answers) {
  auto choice = passes::choose_trace(
      kernel_, {.machine = &options_.machine, .constants = constants_, .answers = answers});
  if (!choice.ok() || !seen_.insert(passes::to_string(choice->trace)).second) return std::nullopt;
  const auto cost = passes::cost_of(kernel_, constants_, options_, answers);
  if (!cost.ok() || cost->total() > kHopeless * best_.expected_us) return std::nullopt;
  return Candidate{std::move(answers), std::move(choice->trace), cost->total()};
}

std::vector<Decision> Search::open_decisions() const {
  auto choice = passes::choose_trace(
      kernel_, {.machine = &options_.machine, .constants = constants_, .answers = best_.answers});
  if (!choice.ok()) return {};
  std::erase_if(choice->decisions, [&](const Decision& d) {
    return d.values.size() < 2 || (search_.same_bits && d.bits != passes::Bits::kKept);
  });
  return std::move(choice->decisions);
}

std::vector<Decision> Search::changes() const {
  const auto made = [&](const Answers& answers) {
    auto choice = passes::choose_trace(
        kernel_, {.machine = &options_.machine, .constants = constants_, .answers = answers});
    return choice.ok() ? std::move(choice->decisions) : std::vector<Decision>{};
  };
  std::map<std::string, int64_t> usual;
  for (const Decision& d : made({})) usual[d.name] = d.answer;
  std::vector<Decision> changed;
  for (Decision d : made(best_.answers)) {
    // One that comes up by others' answers alone has what it would be here.
    d.usual = usual.count(d.name) ? usual[d.name] : d.usual;
    if (d.answer == d.usual || !best_.answers.count(d.name)) continue;
    std::vector<std::string> labels;
    for (const int64_t v : {d.usual, d.answer})
      for (size_t i = 0; i < d.labels.size(); ++i)
        if (d.values[i] == v) labels.push_back(d.labels[i]);
    d.values = {d.usual, d.answer};
    d.labels = std::move(labels);
    const auto alone = passes::cost_of(kernel_, constants_, options_, {{d.name, d.answer}});
    d.microseconds = {usual_.expected_us, alone.ok() ? alone->total() : std::nan("")};
    changed.push_back(std::move(d));
  }
  return changed;
}

void Search::add(Answers answers) {
  if (auto c = form(std::move(answers))) waiting_.push_back(std::move(*c));
}
void Search::sort_waiting() {
  std::stable_sort(waiting_.begin(), waiting_.end(), [](const Candidate& a, const Candidate& b) {
    return a.expected_us > b.expected_us;
  });
}

void Search::add_neighbours() {
  for (const Decision& d : open_decisions())
    for (const int64_t value : d.values) {
      if (value == d.answer) continue;
      Answers answers = best_.answers;
      answers[d.name] = value;
      add(std::move(answers));
    }
  sort_waiting();
}

void Search::add_mixtures() {
  mixed_ = true;
  const std::vector<Decision> open = open_decisions();
  if (open.size() < 2) return;
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random_);
  };
  for (int i = 0; i < kMixtures; ++i) {
    Answers answers = best_.answers;
    for (int changed = 0; changed < 2; ++changed) {
      const Decision& d = open[below(open.size())];
      answers[d.name] = d.values[below(d.values.size())];
    }
    add(std::move(answers));
  }
  sort_waiting();
}

}  // namespace tilewright::autotune
