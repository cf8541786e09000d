#include "tests/autotune/replay/sample.h"

#include <set>

#include "passes/price_decisions.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::autotune {

namespace {

using passes::Answers;
using passes::Decision;

// Of the usual form's expected cost: beyond that, measuring takes long and teaches little.
constexpr double kHopeless = 3;

class Sampler {
 public:
  Sampler(const ReplayKernel& k, size_t count, std::mt19937& random)
      : k_(k), count_(count), random_(random) {}

  std::vector<Form> run() {
    add({});
    most_ = kHopeless * cost({});
    for (const Decision& d : decisions({}))
      for (const int64_t value : d.values) add({{d.name, value}});
    // Half of what is left are mixtures of a few answers, half changes of many.
    for (size_t tries = 0; forms_.size() < count_ && tries < 20 * count_; ++tries)
      add(mixture(tries % 2 == 0 ? 2 + random_() % 2 : 4 + random_() % 6));
    return std::move(forms_);
  }

 private:
  std::vector<Decision> decisions(const Answers& answers) {
    auto choice = choose(answers);
    if (!choice.ok()) return {};
    std::erase_if(choice->decisions, [](const Decision& d) { return d.values.size() < 2; });
    return std::move(choice->decisions);
  }
  Result<passes::Choice> choose(const Answers& answers) {
    return passes::choose_trace(
        k_.kernel, {.machine = &k_.lower.machine, .constants = k_.constants, .answers = answers});
  }
  double cost(const Answers& answers) {
    const auto c = passes::cost_of(k_.kernel, k_.constants, k_.lower, answers);
    return c.ok() ? c->total() : 1e30;
  }
  // Decisions that came up with the answers so far are answered, one after the other.
  Answers mixture(size_t changes) {
    Answers answers;
    for (size_t i = 0; i < changes; ++i) {
      const std::vector<Decision> open = decisions(answers);
      if (open.empty()) break;
      const Decision& d = open[random_() % open.size()];
      answers[d.name] = d.values[random_() % d.values.size()];
    }
    return answers;
  }
  void add(Answers answers) {
    auto choice = choose(answers);
    if (!choice.ok() || !seen_.insert(passes::to_string(choice->trace)).second) return;
    if (!forms_.empty() && cost(answers) > most_) return;
    forms_.push_back({std::move(answers), std::move(choice->trace)});
  }

  const ReplayKernel& k_;
  const size_t count_;
  std::mt19937& random_;
  std::vector<Form> forms_;
  std::set<std::string> seen_;
  double most_ = 0;
};

}  // namespace

std::vector<Form> sample_forms(const ReplayKernel& k, size_t count, std::mt19937& random) {
  return Sampler(k, count, random).run();
}

}  // namespace tilewright::autotune
