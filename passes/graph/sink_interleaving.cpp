// relu(concat(a, b)) of parts that are interleaved as concat(relu(a), relu(b)).
#include "ir/loops/simplify.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_same_shape(const TensorType& a, const TensorType& b) {
  if (a.rank() != b.rank()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (!can_prove_equal(a.dims[d], b.dims[d])) return false;
  return true;
}

class SinkInterleaving : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      const std::optional<size_t> at = interleaved_operand(n);
      if (at)
        replace(n.outputs[0], apply(n, *at, n.inputs[*at]));
      else
        push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  // The concat that makes v and that nothing else reads; null for other values.
  NodeRef interleaving(ValueId v) const {
    const NodeRef n = v == kNone ? NodeRef() : producer(v, ops::concat());
    const bool made_here = static_cast<size_t>(v) >= uses_.size();  // by apply(), for one reader
    return n && NodeView(graph_, *n).attr_int("interleave") && (made_here || used_once(v))
               ? n
               : NodeRef();
  }
  int axis_of(const Node& concat) const {
    return NodeView(graph_, concat).axis(type(concat.outputs[0]).rank());
  }

  // The operand of a pointwise operator that its parts can stand for: the others are constants
  // that do not vary along the axes of the interleaving.
  std::optional<size_t> interleaved_operand(const Node& n) const {
    if (n.op->fusion != FusionKind::kPointwise || n.outputs.size() != 1 ||
        !n.defined_symbols.empty() || !n.regions.empty())
      return std::nullopt;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const NodeRef concat = interleaving(n.inputs[i]);
      if (!concat || !is_same_shape(type(n.inputs[i]), type(n.outputs[0]))) continue;
      bool fits = true;
      for (size_t k = 0; k < n.inputs.size(); ++k)
        fits &= k == i || n.inputs[k] == kNone || is_same_along(n.inputs[k], *concat);
      return fits ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }
  bool is_same_along(ValueId other, const Node& concat) const {
    const int rank = type(concat.outputs[0]).rank(), own = type(other).rank(),
              d = axis_of(concat) - (rank - own);
    if (!constant(other) || own > rank ||
        (d >= 0 && !is_one(type(other).dims[static_cast<size_t>(d)])))
      return false;
    for (ValueId part : concat.inputs)
      if (const NodeRef inner = interleaving(part); inner && !is_same_along(other, *inner))
        return false;
    return true;
  }

  // n with v for its operand `at`, taken apart as far as v is interleaved.
  ValueId apply(const Node& n, size_t at, ValueId v) {
    const NodeRef found = interleaving(v);
    if (!found) {
      std::vector<ValueId> inputs = n.inputs;
      inputs[at] = v;
      return op(n.op, std::move(inputs), n.attributes);
    }
    const Node concat = *found;
    std::vector<ValueId> parts;
    for (ValueId part : concat.inputs) parts.push_back(apply(n, at, part));
    return op(ops::concat(), std::move(parts), concat.attributes);
  }
};

}  // namespace

Graph sink_interleaving(Graph graph) { return SinkInterleaving(std::move(graph)).run(); }

}  // namespace tilewright::passes
