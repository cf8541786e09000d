// Plans as text, and the rules that they obey (planner.h).
#include <algorithm>

#include "ir/graph/op.h"
#include "ir/text/printer_loops.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

const char* name_of(PlanStep::Kind kind) {
  switch (kind) {
    case PlanStep::kKernel: return "kernel";
    case PlanStep::kView: return "view";
    case PlanStep::kPlaced: return "placed";
    case PlanStep::kSymbols: return "symbols";
    case PlanStep::kControl: return "control";
  }
  return "";
}
std::string name_of(const Graph& graph, ValueId v) {
  if (v == kNone) return "_";
  const std::string& name = graph.value(v).name;
  return name.empty() ? "v" + std::to_string(v) : name_to_text(name);
}
// A step of symbols writes a buffer of its own, which is no value.
std::vector<ValueId> results_of(const PlanStep& s) {
  if (s.kind == PlanStep::kSymbols) return {};
  return {s.group.params.begin() + static_cast<long>(s.group.num_inputs), s.group.params.end()};
}

std::string placement_text(const Graph& graph, ValueId v, const Placement& p) {
  std::string text = "  " + name_of(graph, v) + " lies in " + name_of(graph, p.in) + " at (";
  for (const Expr& e : p.start) text += (&e == &p.start[0] ? "" : ", ") + to_text(e);
  text += ") by (";
  for (size_t d = 0; d < p.dim.size(); ++d)
    text += (d ? ", " : "") + std::to_string(p.step[d]) + " of d" + std::to_string(p.dim[d]);
  text += ")";
  if (p.joined != kNone) text += " a part of " + name_of(graph, p.joined);
  if (p.offset) text += ", from byte " + std::to_string(*p.offset);
  return text + "\n";
}

class VerifyPlan {
 public:
  explicit VerifyPlan(const GraphPlan& g) : g_(g) {}
  Status run(bool ordered) {
    for (const auto& [v, placement] : g_.aliases) check(v, placement);
    if (ordered) check_order();
    if (violations_.empty()) return {};
    Error e = internal_error("the plan breaks " + std::to_string(violations_.size()) +
                                 (violations_.size() == 1 ? " rule" : " rules"),
                             "graph '" + g_.graph.name + "'");
    e.notes = std::move(violations_);
    return e;
  }

 private:
  void report(ValueId v, const std::string& what) {
    violations_.push_back(name_of(g_.graph, v) + " " + what);
  }
  void check(ValueId v, const Placement& p) {
    if (p.in == kNone) return report(v, "lies in no value");
    if (g_.aliases.count(p.in)) report(v, "lies in a value without memory of its own");
    const Value &value = g_.graph.value(v), &whole = g_.graph.value(p.in);
    const bool starts = p.start.size() == whole.type.dims.size();
    const bool runs = p.dim.size() == value.type.dims.size() && p.step.size() == p.dim.size() &&
                      std::all_of(p.dim.begin(), p.dim.end(),
                                  [&](int d) { return d >= 0 && d < whole.type.rank(); });
    if (!starts) report(v, "has no start in some dimension of " + name_of(g_.graph, p.in));
    if (!runs) report(v, "has a dimension without a place");
    if (value.type.dtype != whole.type.dtype) report(v, "lies among elements of another type");
    if (starts && runs && p.offset && offset_of(value, whole, p) != p.offset)
      report(v,
             "has another order in memory than " + name_of(g_.graph, p.in) + ", in which it lies");
  }
  void check_order() {
    std::map<ValueId, size_t> made;
    for (size_t i = 0; i < g_.steps.size(); ++i)
      for (const ValueId v : results_of(g_.steps[i]))
        if (v != kNone && !made.emplace(v, i).second) report(v, "is made by two steps");
    for (size_t i = 0; i < g_.steps.size(); ++i)
      for (const ValueId v : inputs_of(g_.steps[i]))
        if (const auto at = made.find(v); at != made.end() && at->second >= i)
          report(v, "is read before the step that makes it");
        else if (at == made.end() && is_made(v))
          report(v, "is read and made by no step");
    for (const ValueId v : g_.graph.outputs)
      if (v != kNone && is_made(v) && !made.count(v)) report(v, "is a result and made by no step");
  }
  bool is_made(ValueId v) const {
    const Value& value = g_.graph.value(v);
    return value.producer >= 0 && !value.constant;
  }

  const GraphPlan& g_;
  std::vector<std::string> violations_;
};

}  // namespace

std::string to_text(const GraphPlan& g) {
  std::string text = "plan " + name_to_text(g.graph.name) + " {\n";
  for (const auto& [v, placement] : g.aliases) text += placement_text(g.graph, v, placement);
  auto values = [&](const std::vector<ValueId>& all) {
    std::string list = "(";
    for (size_t i = 0; i < all.size(); ++i) list += (i ? ", " : "") + name_of(g.graph, all[i]);
    return list + ")";
  };
  for (const PlanStep& s : g.steps) {
    text += std::string("  ") + name_of(s.kind);
    if (!s.group.kernel.name.empty()) text += " " + name_to_text(s.group.kernel.name);
    text += " " + values(inputs_of(s)) + " -> " + values(results_of(s)) + "\n";
  }
  return text + "}\n";
}

Status verify(const GraphPlan& g, bool ordered) { return VerifyPlan(g).run(ordered); }

}  // namespace tilewright::passes
