// The steps of a graph: a kernel for each group, or less where results lie in memory already.
#include <algorithm>
#include <iterator>

#include "ir/graph/infer.h"
#include "ir/loops/rewrite.h"
#include "ir/ops/known_ops.h"
#include "passes/analysis/views.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Order comes later (order_steps).
class Steps {
 public:
  explicit Steps(const GraphPlan& g) : graph_(g.graph), uses_(g.uses), aliases_(g.aliases) {}

  std::vector<PlanStep> collect() {
    std::map<int32_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) groups[graph_.nodes[i].group].push_back(i);
    for (auto& [id, nodes] : groups) {
      for (size_t n : nodes)
        if (!graph_.nodes[n].defined_symbols.empty() && graph_.nodes[n].regions.empty())
          steps_.push_back(symbols_of(n));
      steps_.push_back(step_of(nodes));
    }
    return std::move(steps_);
  }

 private:
  PlanStep symbols_of(size_t node) const {
    PlanStep s;
    s.kind = PlanStep::kSymbols;
    s.node = node;
    s.group = build_symbol_kernel(graph_, node, aliases_);
    // What names the symbols themselves is required of the node's own step.
    std::copy_if(s.group.requirements.begin(), s.group.requirements.end(),
                 std::back_inserter(s.requirements), [&](const Requirement& r) {
                   return std::none_of(graph_.nodes[node].defined_symbols.begin(),
                                       graph_.nodes[node].defined_symbols.end(), [&](const Var& v) {
                                         return uses_var(r.a, v) || uses_var(r.b, v);
                                       });
                 });
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
    s.requirements = s.group.requirements;
    if (s.kind != PlanStep::kKernel) s.requirements = requirements_of(graph_, last);
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

  const Graph& graph_;
  const std::vector<int>& uses_;
  const Aliases& aliases_;
  std::vector<PlanStep> steps_;
};

}  // namespace

void collect_steps(GraphPlan& g) { g.steps = Steps(g).collect(); }

}  // namespace tilewright::passes
