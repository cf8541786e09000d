// What is stored in few bytes is widened where it is read: the bytes are a quarter of the floats,
// and often in memory for other readers already.
//
// Rematerialisation of casts: recomputing a widening costs less than the memory traffic of its
// result.
#include <map>
#include <set>

#include "ir/graph/op.h"
#include "ir/loops/linear.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class RepeatWidening : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

  Graph run() {
    for (Node& n : old_) {
      if (n.op->fusion == FusionKind::kPointwise)
        for (ValueId& v : n.inputs)
          if (widened_elsewhere(v, n)) v = again(v, n.group);
      push(std::move(n));
    }
    drop_unread();
    return std::move(graph_);
  }

 private:
  // Is v a wider form of a value that another group makes, element by element as n reads it?
  bool widened_elsewhere(ValueId v, const Node& n) const {
    const NodeRef by = v == kNone ? NodeRef() : producer(v);
    if (!by || by->group == n.group || !by->defined_symbols.empty()) return false;
    if (by->op != ops::dequantize() && by->op != ops::cast()) return false;
    const TensorType &wide = type(v), &narrow = type(by->inputs[0]), &result = type(n.outputs[0]);
    if (byte_size(narrow.dtype) >= byte_size(wide.dtype) || constant(by->inputs[0])) return false;
    if (wide.rank() != result.rank() || is_scalar(v)) return false;
    for (size_t d = 0; d < wide.dims.size(); ++d)
      if (!same_expr(wide.dims[d], result.dims[d])) return false;
    return true;
  }
  // v computed once more in a group.
  ValueId again(ValueId v, int32_t group) {
    const auto [it, is_new] = made_.try_emplace({v, group}, kNone);
    if (is_new) {
      Node copy = *producer(v);
      const Value& value = graph_.value(v);
      const Layout layout = value.layout;
      it->second = graph_.add_value(value.name, value.type);
      graph_.value(it->second).layout = layout;
      copy.outputs = {it->second};
      copy.group = group;
      push(std::move(copy));
    }
    return it->second;
  }
  void drop_unread() {
    const std::vector<int> uses = graph_.use_counts();
    std::set<ValueId> unread;
    for (const auto& [from, to] : made_)
      if (uses[static_cast<size_t>(from.first)] == 0) unread.insert(from.first);
    std::vector<Node> all = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& n : all)
      if (n.outputs.empty() || !unread.count(n.outputs[0])) push(std::move(n));
  }

  std::map<std::pair<ValueId, int32_t>, ValueId> made_;
};

}  // namespace

Graph repeat_widening(Graph graph) { return RepeatWidening(std::move(graph)).run(); }

}  // namespace tilewright::passes
