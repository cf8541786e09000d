// What updates an input in place is stored over what the input holds: whoever reads that comes first. The graph
// does not say so, as to it both are values.
#include <limits>

#include "ir/loops/simplify.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Bytes of the memory of a value.
struct Range {
  ValueId in = kNone;
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();

  bool meets(const Range& o) const { return in == o.in && begin < o.end && o.begin < end; }
};

class WaitForReaders {
 public:
  WaitForReaders(const GraphPlan& plan, StepNeeds& needs) : g_(plan), needs_(needs) {
    for (const PlanStep& s : g_.steps)
      if (s.kind == PlanStep::kView) view_of_[s.group.params[1]] = s.group.params[0];
  }
  void run() {
    for (const Graph::Update& u : g_.graph.updates)
      order(g_.graph.inputs[static_cast<size_t>(u.input)],
            g_.graph.outputs[static_cast<size_t>(u.output)]);
  }

 private:
  using Accesses = std::vector<std::pair<size_t, Range>>;  // by steps

  void order(ValueId input, ValueId output) {
    Accesses reads, writes;
    for (size_t i = 0; i < g_.steps.size(); ++i) {
      const PlanStep& s = g_.steps[i];
      if (s.kind == PlanStep::kView || s.kind == PlanStep::kPlaced) continue;
      for (size_t p = 0; p < s.group.params.size(); ++p) {
        Range r = range_of(s.group.params[p]);
        if (p < s.group.num_inputs && r.in == input) reads.emplace_back(i, r);
        if (p >= s.group.num_inputs && r.in == output) r.in = input, writes.emplace_back(i, r);
      }
    }
    for (const auto& [writer, written] : writes)
      for (const auto& [reader, read] : reads)
        if (reader != writer && written.meets(read) && !is_after(reader, writer))
          needs_[writer].insert(reader);
  }
  Range range_of(ValueId v) const {
    for (auto it = view_of_.find(v); it != view_of_.end(); it = view_of_.find(v)) v = it->second;
    const auto placed = g_.aliases.find(v);
    if (placed == g_.aliases.end()) return {v};
    const TensorType& type = g_.graph.value(v).type;
    const auto shape = constant_shape(type);
    if (!placed->second.offset || !shape) return {placed->second.in};
    int64_t bytes = byte_size(type.dtype);
    for (int64_t d : *shape) bytes *= d;
    return {placed->second.in, *placed->second.offset, *placed->second.offset + bytes};
  }
  // Does the step need the other one, or what that makes?
  bool is_after(size_t step, size_t other) const {
    std::vector<bool> seen(g_.steps.size(), false);
    std::vector<size_t> open{step};
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      if (i == other) return true;
      for (size_t d : needs_[i])
        if (!seen[d]) seen[d] = true, open.push_back(d);
    }
    return false;
  }

  const GraphPlan& g_;
  StepNeeds& needs_;
  std::map<ValueId, ValueId> view_of_;
};

}  // namespace

void wait_for_readers(const GraphPlan& g, StepNeeds& needs) { WaitForReaders(g, needs).run(); }

}  // namespace tilewright::passes
