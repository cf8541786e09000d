#include "passes/decisions/decisions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "ir/graph/op.h"
#include "ir/module_text/printer_graph.h"

namespace tilewright::passes {

std::string Decisions::fresh(std::string name) const {
  const auto is_taken = [&](const std::string& n) {
    return std::any_of(made_.begin(), made_.end(), [&](const Decision& d) { return d.name == n; });
  };
  if (!is_taken(name)) return name;
  for (int n = 2;; ++n)
    if (std::string next = name + "#" + std::to_string(n); !is_taken(next)) return next;
}

int64_t Decisions::decide(DecisionName name, std::vector<int64_t> values, int64_t usual, Bits bits,
                          std::vector<double> microseconds) {
  const auto is_value = [&](int64_t n) {
    return std::find(values.begin(), values.end(), n) != values.end();
  };
  TW_CHECK(is_value(usual));
  TW_CHECK(microseconds.empty() || microseconds.size() == values.size());
  if (may_contract_) bits = Bits::kChanged;
  Decision d{fresh(std::move(name.name)), values, usual, usual, bits, std::move(microseconds), {},
             std::move(name.alike)};
  if (const auto given = answer(d.name)) {
    if (is_value(*given))
      d.answer = *given;
    else
      refuse("decision '" + d.name + "' has no value " + std::to_string(*given));
  }
  made_.push_back(std::move(d));
  return made_.back().answer;
}

size_t Decisions::decide_which(DecisionName name, std::vector<std::string> labels, size_t usual,
                               Bits bits, std::vector<double> microseconds) {
  std::vector<int64_t> values(labels.size());
  std::iota(values.begin(), values.end(), 0);
  const int64_t n = decide(std::move(name), std::move(values), static_cast<int64_t>(usual), bits,
                           std::move(microseconds));
  made_.back().labels = std::move(labels);
  return static_cast<size_t>(n);
}

std::optional<int64_t> Decisions::answer(const std::string& name) const {
  const auto it = answers_.find(name);
  return it == answers_.end() ? std::nullopt : std::optional(it->second);
}

Status Decisions::check_answers(const std::string& where) const {
  if (!refusal_.empty()) return invalid(refusal_, where);
  for (const auto& [name, value] : answers_)
    if (std::none_of(made_.begin(), made_.end(),
                     [&name = name](const Decision& d) { return d.name == name; }))
      return invalid("no decision '" + name + "' comes up", where);
  return {};
}

void Decisions::forget_after(size_t count) {
  made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(count), made_.end());
}

DecisionName decision_name(const ir::Graph& graph, ir::ValueId v, std::string_view what) {
  std::string name = graph.value(v).name.empty() ? "v" + std::to_string(v) : graph.value(v).name;
  for (char& c : name)
    if (c <= ' ' || c > '~') c = '_';
  return {name + "." + std::string(what),
          std::string(what) + " of " + ir::to_text(graph.value(v).type)};
}

DecisionName decision_name(const ir::Graph& graph, const ir::Node& n, std::string_view what) {
  DecisionName about = decision_name(graph, n.outputs[0], what);
  about.alike += " = " + std::string(n.op->name);
  for (const ir::ValueId i : n.inputs)
    if (i != ir::kNone) about.alike += " " + ir::to_text(graph.value(i).type);
  return about;
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
      all += std::isnan(d.microseconds[i]) ? " (none)" : number;
    }
    text += "  of " + all + (d.bits == Bits::kKept ? "" : "; changes bits") + "\n";
  }
  return text;
}

}  // namespace tilewright::passes
