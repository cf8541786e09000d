// Gradients of slices that cover a tensor, as those of a split: each one is a tensor of zeros beside its
// part, and their sum is the parts side by side.
#include <algorithm>

#include "ir/ops/slicing.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What the adjoint of a slice gives beside zeros: `part`, which lies from `start` to `end` of `axis`.
struct Piece {
  ValueId part = kNone;
  int axis = -1;
  int64_t start = 0, end = 0;
};

class JoinSlices : public GraphRewriter {
 public:
  explicit JoinSlices(Graph graph) : GraphRewriter(std::move(graph)) {}
  Graph run() {
    bool changed = false;
    for (Node& n : old_) {
      follow(n);
      const bool joined = n.op == ops::add() && join(n);
      changed |= joined;
      if (!joined) push(std::move(n));
    }
    return changed ? eliminate_dead_nodes(std::move(graph_)) : std::move(graph_);
  }

 private:
  bool join(const Node& sum) {
    const ValueId y = sum.outputs[0];
    std::vector<Piece> pieces;
    if (!collect(sum, y, pieces)) return false;
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.start < b.start; });
    const int axis = pieces[0].axis;
    int64_t end = 0;
    std::vector<ValueId> parts;
    for (const Piece& p : pieces) {
      if (p.axis != axis || p.start != end) return false;
      end = p.end;
      parts.push_back(p.part);
    }
    if (end != as_int(type(y).dims[static_cast<size_t>(axis)])) return false;
    replace(y, op(ops::concat(), std::move(parts), {{"axis", int64_t{axis}}}));
    return true;
  }
  // Of all that is summed up; false: something else is, too.
  bool collect(const Node& sum, ValueId whole, std::vector<Piece>& pieces) const {
    for (ValueId v : sum.inputs) {
      const NodeRef made = producer(v);
      if (!made || !used_once(v) || !same_dims(v, whole)) return false;
      if (made->op == ops::add()) {
        if (!collect(*made, whole, pieces)) return false;
        continue;
      }
      if (made->op != ops::transposed()) return false;
      const auto piece = piece_of(*made, whole);
      if (!piece) return false;
      pieces.push_back(*piece);
    }
    return true;
  }
  bool same_dims(ValueId a, ValueId b) const {
    const auto x = constant_shape(type(a)), y = constant_shape(type(b));
    return x && y && *x == *y;
  }
  std::optional<Piece> piece_of(const Node& n, ValueId whole) const {
    const NodeView adjoint(graph_, n);
    if (adjoint.attr_string(kTransposedOp) != ops::slice()->name ||
        adjoint.attr_int(kTransposedOperand) != 0)
      return std::nullopt;
    Node slice;  // of a tensor of that type
    slice.op = ops::slice();
    slice.inputs = n.inputs;
    slice.inputs[0] = whole;
    slice.outputs = {n.inputs[0]};
    const std::vector<SliceAxis> axes = known_slice(NodeView(graph_, slice));
    Piece piece{.part = n.inputs[0]};
    for (size_t d = 0; d < axes.size(); ++d) {
      const SliceAxis& a = axes[d];
      const auto start = a.start ? as_int(a.start) : std::nullopt,
                 extent = a.extent ? as_int(a.extent) : std::nullopt;
      if (!start || !extent || *extent < 1 || as_int(a.step) != 1) return std::nullopt;
      if (*extent == as_int(type(whole).dims[d])) continue;
      if (piece.axis >= 0) return std::nullopt;
      piece.axis = static_cast<int>(d);
      piece.start = *start;
      piece.end = *start + *extent;
    }
    return piece.axis < 0 ? std::nullopt : std::optional(piece);
  }
};

}  // namespace

Graph join_slices(Graph graph) { return JoinSlices(std::move(graph)).run(); }

}  // namespace tilewright::passes
