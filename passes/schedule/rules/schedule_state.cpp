#include "passes/schedule/rules/schedule_state.h"

#include <algorithm>
#include <numeric>

namespace tilewright::passes {

bool ScheduleState::apply(std::string primitive, std::vector<std::string> names,
                          std::vector<int64_t> numbers) {
  Step step{std::move(primitive), std::move(names), std::move(numbers)};
  auto next = apply_trace(kernel_, {step});
  if (!next.ok()) {
    obstacle_ = to_string(Trace{step});
    obstacle_.back() = ':';  // the end of the line
    obstacle_ += " " + next.error().message;
    return false;
  }
  kernel_ = std::move(next).value();
  choice_.trace.push_back(std::move(step));
  return true;
}

void ScheduleState::attempt(std::string primitive, std::vector<std::string> names,
                            std::vector<int64_t> numbers) {
  if (!apply(std::move(primitive), std::move(names), std::move(numbers))) lose_step();
}

void ScheduleState::lose_step() {
  choice_.lost.push_back(obstacle_);
  note("done without " + obstacle_);
}

std::optional<int64_t> ScheduleState::answer(const std::string& name) const {
  const auto it = input_.answers.find(name);
  return it == input_.answers.end() ? std::nullopt : std::optional(it->second);
}

int64_t ScheduleState::decide(std::string name, std::vector<int64_t> values, int64_t usual,
                              Bits bits, std::vector<double> microseconds) {
  const auto is_value = [&](int64_t n) {
    return std::find(values.begin(), values.end(), n) != values.end();
  };
  TW_CHECK(is_value(usual));
  TW_CHECK(microseconds.empty() || microseconds.size() == values.size());
  Decision d{std::move(name), values, usual, usual, bits, std::move(microseconds), {}};
  if (const auto given = answer(d.name)) {
    if (is_value(*given))
      d.answer = *given;
    else
      refuse("decision '" + d.name + "' has no value " + std::to_string(*given));
  }
  choice_.decisions.push_back(std::move(d));
  return choice_.decisions.back().answer;
}

size_t ScheduleState::decide_which(std::string name, std::vector<std::string> labels, size_t usual,
                                   Bits bits) {
  std::vector<int64_t> values(labels.size());
  std::iota(values.begin(), values.end(), 0);
  const int64_t n = decide(std::move(name), std::move(values), static_cast<int64_t>(usual), bits);
  choice_.decisions.back().labels = std::move(labels);
  return static_cast<size_t>(n);
}

Result<Choice> ScheduleState::finish() {
  const auto came_up = [&](const std::string& name) {
    return std::any_of(choice_.decisions.begin(), choice_.decisions.end(),
                       [&](const Decision& d) { return d.name == name; });
  };
  for (const auto& [name, value] : input_.answers)
    if (!came_up(name)) refuse("no decision '" + name + "' comes up");
  if (!refusal_.empty()) return invalid(refusal_, "kernel '" + kernel_.name + "'");
  return std::move(choice_);
}

std::vector<int64_t> powers_of_two(int64_t first, int64_t last) {
  std::vector<int64_t> values;
  for (int64_t n = first; n < last; n *= 2) values.push_back(n);
  values.push_back(last);
  return values;
}
std::vector<int64_t> with(std::vector<int64_t> values, int64_t usual) {
  const auto at = std::lower_bound(values.begin(), values.end(), usual);
  if (at == values.end() || *at != usual) values.insert(at, usual);
  return values;
}

std::string to_string(const std::vector<Decision>& decisions) {
  std::string text;
  char number[32];
  for (const Decision& d : decisions) {
    const auto value = [&](size_t i) {
      return d.labels.empty() ? std::to_string(d.values[i]) : d.labels[i];
    };
    std::string all;
    for (size_t i = 0; i < d.values.size(); ++i) {
      if (d.values[i] == d.answer) text += d.name + " = " + value(i);
      all += (i ? ", " : "") + value(i);
      if (d.microseconds.empty()) continue;
      std::snprintf(number, sizeof number, " (%.3g us)", d.microseconds[i]);
      all += number;
    }
    text += "  of " + all + (d.bits == Bits::kKept ? "" : "; changes bits") + "\n";
  }
  return text;
}

}  // namespace tilewright::passes
