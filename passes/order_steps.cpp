// The order of steps, and which of them are needed.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Topological order over values and over symbols that the run defines, stable with regard to the
// graph's own order.
void add_symbols(const Value& v, std::set<const ExprNode*>& to) {
  for (const Expr& d : v.type.dims)
    for (const Var& s : free_vars_in_order(d)) to.insert(s.get());
}
void add_symbols_of(const Graph& region, std::set<const ExprNode*>& to) {
  for (const Value& v : region.values) {
    add_symbols(v, to);
    if (!v.known) continue;
    for (const Expr& e : *v.known)
      for (const Var& s : free_vars_in_order(e)) to.insert(s.get());
  }
  for (const Node& n : region.nodes)
    for (const auto& inner : n.regions) add_symbols_of(*inner, to);
}
// Named by the extents of the step's values, by its kernel, or inside its regions.
std::set<const ExprNode*> symbols_used(const Graph& graph, const PlanStep& s) {
  std::set<const ExprNode*> used;
  for (const Var& v : s.group.kernel.scalars) used.insert(v.get());
  for (ValueId v : s.group.params)
    if (v != kNone) add_symbols(graph.value(v), used);
  for (const auto& region : graph.nodes[s.node].regions) add_symbols_of(*region, used);
  for (const Requirement& r : s.requirements)
    for (const Expr& e : {r.a, r.b})
      for (const Var& v : free_vars_in_order(e)) used.insert(v.get());
  return used;
}

class DropUnused {
 public:
  explicit DropUnused(GraphPlan& g) : g_(g) {}
  // What is read only to infer shapes is not computed; but symbols that are named somewhere must
  // be.
  void run() {
    for (ValueId v : g_.graph.outputs) need(v);
    for (const Requirement& r : g_.graph.requirements)
      for (const Expr& e : {r.a, r.b})
        for (const Var& v : free_vars_in_order(e)) symbols_.insert(v.get());
    std::vector<PlanStep> kept;
    for (size_t i = g_.steps.size(); i-- > 0;) {
      PlanStep& s = g_.steps[i];
      bool wanted = s.kind == PlanStep::kSymbols && nodes_.count(s.node);
      if (s.kind != PlanStep::kSymbols)
        for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p)
          wanted |= values_.count(s.group.params[p]) != 0;
      if (s.kind == PlanStep::kSymbols || s.kind == PlanStep::kControl)
        for (const Var& v : g_.graph.nodes[s.node].defined_symbols)
          wanted |= symbols_.count(v.get()) != 0;
      if (!wanted) continue;
      nodes_.insert(s.node);
      for (ValueId v : inputs_of(s)) need(v);
      for (const ExprNode* v : symbols_used(g_.graph, s)) symbols_.insert(v);
      kept.push_back(std::move(s));
    }
    std::reverse(kept.begin(), kept.end());
    g_.steps = std::move(kept);
  }

 private:
  void need(ValueId v) {
    if (v == kNone) return;
    values_.insert(v);
    add_symbols(g_.graph.value(v), symbols_);
  }

  GraphPlan& g_;
  std::set<ValueId> values_;
  std::set<size_t> nodes_;
  std::set<const ExprNode*> symbols_;
};

}  // namespace

std::vector<ValueId> inputs_of(const PlanStep& s) {
  const auto begin = s.group.params.begin();
  std::vector<ValueId> in(begin, begin + static_cast<long>(s.group.num_inputs));
  in.insert(in.end(), s.after.begin(), s.after.end());
  return in;
}

// By the graph's order of last nodes, but each step after those whose results or symbols it
// needs: another group may read the first result of a group that goes on below it. Early ones
// (OpDef) follow the last of these.
void order_steps(GraphPlan& g) {
  std::vector<PlanStep>& steps = g.steps;
  std::map<ValueId, size_t> producer;
  std::map<const ExprNode*, size_t> definer;
  for (size_t i = 0; i < steps.size(); ++i) {
    const PlanStep& s = steps[i];
    if (s.kind == PlanStep::kSymbols || s.kind == PlanStep::kControl)
      for (const Var& v : g.graph.nodes[s.node].defined_symbols) definer[v.get()] = i;
    if (s.kind != PlanStep::kSymbols)
      for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p)
        producer[s.group.params[p]] = i;
  }
  StepNeeds needs(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const PlanStep& s = steps[i];
    for (ValueId v : inputs_of(s))
      if (auto it = producer.find(v); it != producer.end()) needs[i].insert(it->second);
    if (definer.empty()) continue;
    for (const ExprNode* v : symbols_used(g.graph, s))
      if (auto it = definer.find(v); it != definer.end()) needs[i].insert(it->second);
  }
  wait_for_readers(g, needs);
  std::vector<size_t> place;  // by step: of the node that it follows or ends with
  for (size_t i = 0; i < steps.size(); ++i) {
    place.push_back(steps[i].node);
    if (!g.graph.nodes[steps[i].node].op->early || needs[i].empty()) continue;
    place[i] = 0;
    for (size_t d : needs[i]) place[i] = std::max(place[i], steps[d].node);
  }
  std::vector<PlanStep> ordered;
  auto before = [&](size_t a, size_t b) { return std::pair(place[a], a) < std::pair(place[b], b); };
  std::vector<std::vector<size_t>> users(steps.size());
  std::set<size_t, decltype(before)> ready(before);
  for (size_t i = 0; i < steps.size(); ++i) {
    needs[i].erase(i);
    for (size_t d : needs[i]) users[d].push_back(i);
    if (needs[i].empty()) ready.insert(i);
  }
  while (!ready.empty()) {
    const size_t i = *ready.begin();
    ready.erase(ready.begin());
    for (size_t u : users[i]) {
      needs[u].erase(i);
      if (needs[u].empty()) ready.insert(u);
    }
    ordered.push_back(std::move(steps[i]));
  }
  TW_CHECK(ordered.size() == steps.size());
  steps = std::move(ordered);
}

void drop_unused_steps(GraphPlan& g) { DropUnused(g).run(); }

}  // namespace tilewright::passes
