// The steps of a graph, and the lives of the buffers of a program.
#include <algorithm>
#include <iterator>

#include "ir/loops/rewrite.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/graph_passes.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Steps {
 public:
  Steps(const Graph& graph, const std::vector<int>& uses, const Aliases& aliases)
      : graph_(graph), uses_(uses), aliases_(aliases) {}

  std::vector<PlanStep> collect() {
    std::map<int32_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) groups[graph_.nodes[i].group].push_back(i);
    for (auto& [id, nodes] : groups) {
      for (size_t n : nodes)
        if (!graph_.nodes[n].defined_symbols.empty() && graph_.nodes[n].regions.empty())
          steps_.push_back(symbols_of(n));
      steps_.push_back(step_of(nodes));
    }
    order_steps();
    drop_unused();
    return std::move(steps_);
  }

 private:
  PlanStep symbols_of(size_t node) const {
    PlanStep s;
    s.kind = PlanStep::kSymbols;
    s.node = node;
    s.group = build_symbol_kernel(graph_, node, aliases_);
    return s;
  }
  PlanStep step_of(const std::vector<size_t>& nodes) const {
    PlanStep s;
    s.node = nodes.back();
    const Node& last = graph_.nodes[s.node];
    if (!last.op->compute) {
      s.kind = PlanStep::kControl;
      for (ValueId v : last.inputs)
        if (v != kNone) s.group.params.push_back(v);
      s.group.num_inputs = s.group.params.size();
      for (ValueId v : last.outputs)
        if (v != kNone) s.group.params.push_back(v);
    } else if (nodes.size() == 1 && is_view(graph_, last)) {
      s.kind = aliases_.count(last.outputs[0]) ? PlanStep::kPlaced : PlanStep::kView;
      s.group.params = {last.inputs[0], last.outputs[0]};
      s.group.num_inputs = 1;
    } else if (is_placed(nodes, last)) {
      s.kind = PlanStep::kPlaced;
      s.group.params = last.inputs;
      std::erase(s.group.params, kNone);
      s.group.num_inputs = s.group.params.size();
      s.group.params.push_back(last.outputs[0]);
    } else {
      s.nodes = nodes;
      s.group = build_group_kernel(graph_, nodes, uses_, aliases_);
      if (nodes.size() == 1)
        std::copy_if(last.inputs.begin(), last.inputs.end(), std::back_inserter(s.after),
                     [&](ValueId v) { return v != kNone && joins(v, last); });
    }
    if (s.kind != PlanStep::kControl)
      s.requirements = requirements_of(graph_, nodes, s.group.kernel);
    return s;
  }
  // A slice that lies in its operand, or a concat all of whose operands lie in it.
  bool is_placed(const std::vector<size_t>& nodes, const Node& n) const {
    if (nodes.size() != 1) return false;
    if (n.op == ops::slice())
      return aliases_.count(n.outputs[0]) && aliases_.at(n.outputs[0]).joined == kNone;
    return n.op == ops::concat() &&
           std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return joins(v, n); });
  }
  bool joins(ValueId v, const Node& concat) const {
    const auto it = aliases_.find(v);
    return it != aliases_.end() && it->second.joined == concat.outputs[0];
  }

  static std::vector<ValueId> inputs_of(const PlanStep& s) {
    const auto begin = s.group.params.begin();
    std::vector<ValueId> in(begin, begin + static_cast<long>(s.group.num_inputs));
    in.insert(in.end(), s.after.begin(), s.after.end());
    return in;
  }

  // By the graph's order of last nodes, but each step after those whose results or symbols it
  // needs: another group may read the first result of a group that goes on below it.
  void order_steps() {
    std::map<ValueId, size_t> producer;
    std::map<const ExprNode*, size_t> definer;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlanStep& s = steps_[i];
      if (s.kind == PlanStep::kSymbols || s.kind == PlanStep::kControl)
        for (const Var& v : graph_.nodes[s.node].defined_symbols) definer[v.get()] = i;
      if (s.kind != PlanStep::kSymbols)
        for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p)
          producer[s.group.params[p]] = i;
    }
    std::vector<std::set<size_t>> needs(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlanStep& s = steps_[i];
      for (ValueId v : inputs_of(s))
        if (auto it = producer.find(v); it != producer.end()) needs[i].insert(it->second);
      if (definer.empty()) continue;
      for (const ExprNode* v : symbols_used(s))
        if (auto it = definer.find(v); it != definer.end()) needs[i].insert(it->second);
    }
    std::vector<PlanStep> ordered;
    auto before = [&](size_t a, size_t b) {
      return std::pair(steps_[a].node, a) < std::pair(steps_[b].node, b);
    };
    std::vector<std::vector<size_t>> users(steps_.size());
    std::set<size_t, decltype(before)> ready(before);
    for (size_t i = 0; i < steps_.size(); ++i) {
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
      ordered.push_back(std::move(steps_[i]));
    }
    TW_CHECK(ordered.size() == steps_.size());
    steps_ = std::move(ordered);
  }

  // What is read only to infer shapes is not computed; but symbols that are named somewhere must
  // be.
  void drop_unused() {
    for (ValueId v : graph_.outputs) need(v);
    std::vector<PlanStep> kept;
    for (size_t i = steps_.size(); i-- > 0;) {
      PlanStep& s = steps_[i];
      bool wanted = s.kind == PlanStep::kSymbols && nodes_.count(s.node);
      if (s.kind != PlanStep::kSymbols)
        for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p)
          wanted |= values_.count(s.group.params[p]) != 0;
      if (s.kind == PlanStep::kSymbols || s.kind == PlanStep::kControl)
        for (const Var& v : graph_.nodes[s.node].defined_symbols)
          wanted |= symbols_.count(v.get()) != 0;
      if (!wanted) continue;
      nodes_.insert(s.node);
      for (ValueId v : inputs_of(s)) need(v);
      for (const ExprNode* v : symbols_used(s)) symbols_.insert(v);
      kept.push_back(std::move(s));
    }
    std::reverse(kept.begin(), kept.end());
    steps_ = std::move(kept);
  }
  void need(ValueId v) {
    if (v == kNone) return;
    values_.insert(v);
    add_symbols(graph_.value(v), symbols_);
  }
  // Named by the extents of the step's values, by its kernel, or inside its regions.
  std::set<const ExprNode*> symbols_used(const PlanStep& s) const {
    std::set<const ExprNode*> used;
    for (const Var& v : s.group.kernel.scalars) used.insert(v.get());
    for (ValueId v : s.group.params)
      if (v != kNone) add_symbols(graph_.value(v), used);
    for (const auto& region : graph_.nodes[s.node].regions) add_symbols_of(*region, used);
    for (const RequireInstruction& r : s.requirements)
      for (const Expr& e : {r.a, r.b})
        for (const Var& v : free_vars_in_order(e)) used.insert(v.get());
    return used;
  }
  static void add_symbols(const Value& v, std::set<const ExprNode*>& to) {
    for (const Expr& d : v.type.dims)
      for (const Var& s : free_vars_in_order(d)) to.insert(s.get());
  }
  static void add_symbols_of(const Graph& region, std::set<const ExprNode*>& to) {
    for (const Value& v : region.values) {
      add_symbols(v, to);
      if (!v.known) continue;
      for (const Expr& e : *v.known)
        for (const Var& s : free_vars_in_order(e)) to.insert(s.get());
    }
    for (const Node& n : region.nodes)
      for (const auto& inner : n.regions) add_symbols_of(*inner, to);
  }

  const Graph& graph_;
  const std::vector<int>& uses_;
  const Aliases& aliases_;
  std::vector<PlanStep> steps_;
  std::set<ValueId> values_;
  std::set<size_t> nodes_;
  std::set<const ExprNode*> symbols_;
};

class Lifetimes {
 public:
  explicit Lifetimes(Program& program) : p_(program), seen_(program.buffers.size()) {}
  void set() {
    const auto count = static_cast<int32_t>(p_.blocks[0].size());
    for (int32_t i = 0; i < count; ++i) touch(p_.blocks[0][static_cast<size_t>(i)], i);
    for (int32_t b : p_.outputs) touch(b, count > 0 ? count - 1 : 0);
    for (ProgramBuffer& b : p_.buffers) {
      if (b.alias_of < 0) continue;
      const ProgramBuffer& r = p_.buffers[root(b.alias_of)];
      b.first_use = r.first_use;
      b.last_use = r.last_use;
    }
  }

 private:
  size_t root(int32_t b) const {
    while (p_.buffers[static_cast<size_t>(b)].alias_of >= 0)
      b = p_.buffers[static_cast<size_t>(b)].alias_of;
    return static_cast<size_t>(b);
  }
  void touch(int32_t b, int32_t at) {
    if (b < 0) return;
    ProgramBuffer& r = p_.buffers[root(b)];
    if (!seen_[root(b)]) r.first_use = at;
    seen_[root(b)] = true;
    r.last_use = std::max(r.last_use, at);
  }
  // A block inside lives at the instruction of the main block around it.
  void touch_block(int32_t block, int32_t at) {
    if (block < 0) return;
    for (const ProgramInstruction& i : p_.blocks[static_cast<size_t>(block)]) touch(i, at);
  }
  void touch(const ProgramInstruction& i, int32_t at) {
    std::visit([&](const auto& x) { uses(x, at); }, i);
  }
  void uses(const CallInstruction& x, int32_t at) {
    for (int32_t b : x.buffers) touch(b, at);
  }
  void uses(const DefineSymbolInstruction& x, int32_t at) { touch(x.buffer, at); }
  void uses(const AllocateInstruction& x, int32_t at) { touch(x.buffer, at); }
  void uses(const CopyInstruction& x, int32_t at) {
    touch(x.to, at);
    touch(x.from, at);
  }
  void uses(const FailInstruction&, int32_t) {}
  void uses(const CheckIndicesInstruction& x, int32_t at) {
    touch(x.indices, at);
    touch(x.farthest, at);
  }
  void uses(const RequireInstruction&, int32_t) {}
  void uses(const IfInstruction& x, int32_t at) {
    touch(x.condition, at);
    touch_block(x.then_block, at);
    touch_block(x.else_block, at);
  }
  void uses(const LoopInstruction& x, int32_t at) {
    for (int32_t b : {x.trip_count, x.initial_condition, x.iteration, x.body_condition})
      touch(b, at);
    for (const auto& [state, computed] : x.carried) {
      touch(state, at);
      touch(computed, at);
    }
    for (const auto& [element, result] : x.scans) {
      touch(element, at);
      touch(result, at);
    }
    touch_block(x.body, at);
  }

  Program& p_;
  std::vector<bool> seen_;
};

}  // namespace

std::vector<PlanStep> collect_steps(const Graph& graph, const std::vector<int>& uses,
                                    const Aliases& aliases) {
  return Steps(graph, uses, aliases).collect();
}
void set_lifetimes(Program& program) { Lifetimes(program).set(); }

}  // namespace tilewright::passes
