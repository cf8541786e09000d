#include "autotune/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autotune/search/priced_form.h"
#include "passes/price_decisions.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {

using passes::Answers;
using passes::Decision;
using passes::Trace;

namespace {

// A form that is expected to take so many times as long as the best one is not measured: costs are
// good to a factor of two, and of forms of one kernel better than that.
constexpr double kHopeless = 1.5;
// Where trees learn how good: they say which of these are worth it.
constexpr double kHopelessIfLearned = 3;
constexpr size_t kParents = 4;

}  // namespace

Search::Search(ir::Kernel kernel, std::set<std::string> constants,
               const passes::LowerOptions& options, SearchOptions search)
    : kernel_(std::move(kernel)),
      constants_(std::move(constants)),
      options_(options),
      search_(std::move(search)),
      random_(search_.seed),
      prospects_(search_.model) {
  options_.find_schedule = nullptr;
  options_.verify = false;  // whoever is measured is compiled, and verified then
}

Result<Search> Search::start(ir::Kernel kernel, std::set<std::string> constants,
                             const passes::LowerOptions& options, SearchOptions search) {
  Search s(std::move(kernel), std::move(constants), options, std::move(search));
  TW_ASSIGN(Trace schedule, schedule_of(s.kernel_, s.constants_, s.options_, {}));
  TW_ASSIGN(PricedForm usual, price(s.kernel_, std::move(schedule), s.options_));
  s.usual_ = {{}, std::move(usual.schedule), usual.cost.total()};
  s.usual_features_ = std::move(usual.features);
  s.best_ = s.usual_;
  s.seen_.insert(passes::to_string(s.usual_.schedule));
  if (!s.search_.from.empty())
    if (auto known = s.form(s.search_.from)) s.best_ = std::move(*known);
  s.add_neighbours(s.best_.answers);
  return s;
}

void Search::weigh(size_t forms) {
  if (!measured_.empty()) add_descendant();
  for (size_t i = 0; i < forms && !unweighed_.empty(); ++i) weigh_one();
}

std::optional<Candidate> Search::next() {
  while (waiting_.empty()) {
    if (unweighed_.empty() && !add_more()) return std::nullopt;
    weigh_one();
  }
  const auto id = prospects_.take(std::log(best_.ratio));
  Candidate c = std::move(waiting_.at(*id));
  waiting_.erase(*id);
  return c;
}

void Search::report(Candidate& candidate, double ratio) {
  candidate.ratio = ratio;
  if (search_.model)
    search_.model->learn(candidate.features, std::log(ratio) - log_expected(candidate));
  std::erase_if(measured_, [&](const Candidate& c) { return c.answers == candidate.answers; });
  const auto slower = [&](const Candidate& c) { return c.ratio > ratio; };
  measured_.insert(std::find_if(measured_.begin(), measured_.end(), slower), candidate);
  if (measured_.size() > kParents) measured_.pop_back();
}

void Search::accept(Candidate candidate) {
  best_ = std::move(candidate);
  mixed_ = false;
  near_ = 0;
  add_neighbours(best_.answers);
}

double Search::gap() {
  if (waiting_.empty() && unweighed_.empty()) (void)add_more();
  return unweighed_.empty() ? prospects_.gap(std::log(best_.ratio)) : 1;
}

double Search::log_expected(const Candidate& c) const {
  return std::log(c.expected_us / usual_.expected_us);
}

// Nothing when no legal schedule follows, it is none that is new, or it is hopeless.
std::optional<Candidate> Search::form(Answers answers) {
  auto schedule = schedule_of(kernel_, constants_, options_, answers);
  if (!schedule.ok() || !seen_.insert(passes::to_string(*schedule)).second) return std::nullopt;
  auto priced = price(kernel_, std::move(*schedule), options_);
  const bool learns = search_.model && search_.model->learns();
  const double most = learns ? kHopelessIfLearned : kHopeless;
  if (!priced.ok() || priced->cost.total() > most * best_.expected_us) return std::nullopt;
  return Candidate{std::move(answers), std::move(priced->schedule), priced->cost.total(),
                   relative_features(priced->features, usual_features_)};
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

// A form costs milliseconds to weigh and a hundred times that to measure, and a kernel may have a
// hundred neighbours: a few are weighed at a time, so that measuring begins at once.
void Search::weigh_one() {
  auto c = form(std::move(unweighed_.front()));
  unweighed_.pop_front();
  if (!c) return;
  prospects_.add({.id = forms_, .log_expected = log_expected(*c), .features = c->features});
  waiting_.emplace(forms_++, std::move(*c));
}

}  // namespace tilewright::autotune
