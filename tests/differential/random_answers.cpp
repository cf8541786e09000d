#include "tests/differential/random_answers.h"

#include "runtime/core/result.h"

namespace tilewright {

using passes::Answers;
using passes::Choice;
using passes::Decision;

passes::Trace RandomAnswers::schedule(const ir::Kernel& kernel,
                                      const std::set<std::string>& constants) {
  constexpr int kMostAnswers = 4;
  Answers given;
  const auto choose = [&](const Answers& a) {
    return passes::choose_trace(kernel,
                                {.machine = &machine_, .constants = constants, .answers = a});
  };
  Result<Choice> choice = choose(given);
  TW_CHECK(choice.ok());
  // One answer after the other: which decisions come up depends on those before.
  for (int n = 0; n < kMostAnswers && !choice->decisions.empty(); ++n) {
    const Decision& d = choice->decisions[random_() % choice->decisions.size()];
    const int64_t value = d.values[random_() % d.values.size()];
    if (value == d.answer) continue;
    Answers more = given;
    more[d.name] = value;
    Result<Choice> next = choose(more);
    if (!next.ok()) {
      TW_CHECK(next.error().kind == ErrorKind::kInvalid);
      ++refused;
      continue;
    }
    ++followed;
    keep_bits &= d.bits == passes::Bits::kKept;
    kinds.insert(d.name.substr(d.name.rfind('.') + 1));
    answers += kernel.name + ": " + d.name + " = " + std::to_string(value) + " (usually " +
               std::to_string(d.usual) + ")\n";
    given = std::move(more);
    choice = std::move(next);
  }
  auto replayed = passes::parse_trace(passes::to_string(choice->trace));
  TW_CHECK(replayed.ok() && *replayed == choice->trace);
  return std::move(*replayed);
}

}  // namespace tilewright
