// Fusion into groups. A group has at most one anchor (a contraction or a reduction); pointwise work
// before and after it joins as prologue and epilogue.
#include <algorithm>
#include <set>

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "ir/loops/linear.h"
#include "ir/ops/known_ops.h"
#include "passes/analysis/aliases.h"
#include "passes/analysis/views.h"
#include "passes/cost/fork_cost.h"
#include "passes/graph/graph_passes.h"
#include "passes/graph/node_groups.h"
#include "passes/graph/pack_operands.h"
#include "passes/graph/readers.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Greedy, in topological order (TVM fuses by post-dominators to the same end): a node joins the
// groups of its producers while there is one anchor at most and the merged group does not depend on
// itself through a node outside.
constexpr size_t kMostNodes = 40;  // of a group: bounds the size of one kernel

bool same_dims(const TensorType& a, const TensorType& b) {
  if (a.rank() != b.rank()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (!same_expr(a.dims[d], b.dims[d])) return false;
  return true;
}
// A copy from one layout to another walks across memory on one side; nothing else is to.
bool changes_layout(const Graph& graph, const Node& n) {
  if (n.op != ops::identity()) return false;
  const Value &from = graph.value(n.inputs[0]), &to = graph.value(n.outputs[0]);
  return is_row_major(from.layout, from.type) != is_row_major(to.layout, to.type);
}
// Nothing is computed: the result lies in memory that is there.
bool takes_no_work(const Graph& graph, const Node& n) {
  return is_view(graph, n) || is_piece_of_input(graph, n);
}
// A copy that packs takes what comes before element by element with it.
bool packs(const Graph& graph, const Node& n) {
  return changes_layout(graph, n) && is_packed_in_groups(graph.value(n.outputs[0]).layout);
}
struct Group {
  bool open = true;       // may still grow
  bool anchored = false;  // holds a reduction or contraction
  bool reduced = false;   // and another one, of its rows
  bool cheap = true;
  TensorType type;  // of its latest result: what an epilogue must match
};

class Fuse {
 public:
  Fuse(Graph& graph, const MachineDescription& machine)
      : graph_(graph),
        machine_(machine),
        readers_(graph.nodes, graph),
        uses_(graph.use_counts()),
        groups_(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) place(i);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) graph_.nodes[i].group = groups_.of(i);
  }

 private:
  void place(size_t i) {
    const Node& n = graph_.nodes[i];
    std::set<int> join;
    // Symbols are computed before the kernel, from operands in memory.
    if (n.defined_symbols.empty() && !takes_no_work(graph_, n) &&
        (!changes_layout(graph_, n) || packs(graph_, n)) && n.op->fusion != FusionKind::kOpaque &&
        !n.op->reads_stored && !n.op->of_types && single_output(n)) {
      const int anchor = anchor_for(i);
      for (ValueId v : n.inputs) {
        int g = groups_.producer_of(v);
        if (g < 0 || !may_join(i, v, g)) continue;
        if (facts(g).anchored && g != anchor) continue;
        std::set<int> trial = join;
        trial.insert(g);
        if (compatible(i, trial) && !groups_.makes_cycle(i, trial)) join = trial;
      }
    }
    merge(i, join);
  }
  // The latest anchored producer whose epilogue node i can be; -1: none.
  int anchor_for(size_t i) const {
    int anchor = -1;
    for (ValueId v : graph_.nodes[i].inputs) {
      const int g = groups_.producer_of(v);
      if (g > anchor && may_join(i, v, g) && facts(g).anchored && compatible(i, {g}) &&
          !groups_.makes_cycle(i, {g}))
        anchor = g;
    }
    return anchor;
  }
  static bool single_output(const Node& n) { return n.outputs.size() == 1; }
  const Group& facts(int group) const { return facts_[static_cast<size_t>(group)]; }
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }

  // May node i, which reads v of group g, become part of g?
  bool may_join(size_t i, ValueId v, int g_index) const {
    const Group& g = facts(g_index);
    const Node& n = graph_.nodes[i];
    if (!g.open || groups_.nodes(g_index).size() >= kMostNodes) return false;
    const bool same_shape = same_dims(type(v), type(n.outputs[0]));
    const bool only_use = uses_[static_cast<size_t>(v)] == 1;
    switch (n.op->fusion) {
      case FusionKind::kPointwise:
        if (packs(graph_, n)) return !g.anchored && only_use;
        if (!same_shape) return !g.anchored && only_use && g.cheap;
        return (!g.anchored || same_dims(g.type, type(n.outputs[0]))) &&
               !waits_for_reader(i, v, g_index);
      case FusionKind::kReduction:
        if (g.anchored) return only_use && same_shape && is_row_of_places(n, v, g_index);
        return only_use && g.cheap;
      case FusionKind::kInjective:
      case FusionKind::kContraction: return !g.anchored && only_use && g.cheap;
      case FusionKind::kOpaque: return false;
    }
    return false;
  }
  // Of a product of many places, each of a task, rows that stay in the second cache until all of them are there
  // (schedule/rules/product_rows_rule.cpp).
  bool is_row_of_places(const Node& n, ValueId v, int g) const {
    constexpr int64_t kPartOfL2 = 8;
    if (n.op != ops::softmax() && n.op != ops::softmax_gradient()) return false;
    const auto& members = groups_.nodes(g);
    const bool product = std::any_of(members.begin(), members.end(), [&](size_t m) {
      return graph_.nodes[m].op == ops::matmul() &&
             same_dims(type(graph_.nodes[m].outputs[0]), type(v)) &&
             type(graph_.nodes[m].inputs[1]).rank() == type(v).rank();
    });
    const TensorType& t = type(v);
    if (!product || facts(g).reduced || t.rank() < 3 || t.dtype != DType::kFloat32 ||
        NodeView(graph_, n).axis(t.rank(), -1) + 1 != t.rank())
      return false;
    const int64_t all = known_elements(t),
                  of_a_place = as_int(t.dims[t.dims.size() - 2]).value_or(0) *
                               as_int(t.dims.back()).value_or(0);
    return of_a_place > 0 && are_tasks(machine_, all / of_a_place) &&
           of_a_place * byte_size(t.dtype) * kPartOfL2 <= machine_.l2_bytes;
  }
  // In the group, node i would write what its only reader then reads. That cannot be in the group, and may as well
  // read v itself, which lies in memory anyway and takes no more bytes. Nor can it where only others of its kind are
  // between them.
  bool waits_for_reader(size_t i, ValueId v, int g) const {
    constexpr size_t kLongestChain = 8;
    const Node* n = &graph_.nodes[i];
    std::vector<size_t> chain;
    while (chain.size() < kLongestChain) {
      const ValueId result = n->outputs[0];
      const auto& reading = readers_.of(result);
      if (reading.size() != 1 || readers_.is_output(result) || !is_large(type(result)) ||
          (chain.empty() && (!readers_.lies_in_memory(v, *n) ||
                             byte_size(type(result).dtype) < byte_size(type(v).dtype))))
        return false;
      chain.push_back(static_cast<size_t>(n - graph_.nodes.data()));
      const bool costly = n->op->costly;
      n = reading[0];
      if (n->op->fusion == FusionKind::kReduction) return chain.size() == 1 && !costly;
      if (n->op->fusion != FusionKind::kPointwise || n->outputs.size() != 1) return false;
      if (groups_.depends_from_outside(*n, chain, g)) return true;
    }
    return false;
  }
  // Groups joined into one must agree: one anchor, and an anchor's epilogue reads its other
  // operands from outside or from groups of the same shape.
  bool compatible(size_t i, const std::set<int>& join) const {
    size_t nodes = 1;
    const bool reduces = has_reduction(graph_.nodes[i].op->fusion);
    int anchors = 0;
    for (int g : join) {
      nodes += groups_.nodes(g).size();
      anchors += facts(g).anchored ? 1 : 0;
    }
    // Rows of places (may_join) are the one kind of reduction that joins another.
    return anchors <= 1 && nodes <= kMostNodes && (!reduces || anchors == 0 || join.size() == 1);
  }
  void merge(size_t i, const std::set<int>& join) {
    const Node& n = graph_.nodes[i];
    Group merged;
    for (int g : join) {
      merged.anchored |= facts(g).anchored;
      merged.reduced |= facts(g).reduced || (facts(g).anchored && has_reduction(n.op->fusion));
      merged.cheap &= facts(g).cheap;
    }
    merged.open = !takes_no_work(graph_, n) && !changes_layout(graph_, n) &&
                  n.op->fusion != FusionKind::kOpaque && single_output(n) && !n.op->has_parts;
    merged.anchored |= has_reduction(n.op->fusion);
    merged.cheap &= !n.op->costly;
    if (!n.outputs.empty() && n.outputs[0] != kNone) merged.type = type(n.outputs[0]);
    groups_.merge(i, join);
    facts_.push_back(std::move(merged));
  }

  Graph& graph_;
  const MachineDescription& machine_;
  const Readers readers_;
  std::vector<int> uses_;
  NodeGroups groups_;
  std::vector<Group> facts_;  // by number
};

}  // namespace

Graph fuse_operators(Graph graph, const MachineDescription& machine) {
  Fuse(graph, machine).run();
  return graph;
}
Graph leave_unfused(Graph graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].group = static_cast<int32_t>(i);
  return graph;
}

}  // namespace tilewright::passes
