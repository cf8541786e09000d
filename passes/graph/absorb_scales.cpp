// quantize(y, s) where y is a sum of multiples of constants: these are divided by s instead, and
// the division is gone. Values in the middle between two integers may be rounded to the other one.
#include "ir/graph/op.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// For int8 chains: conv -> (scale) -> requantise has one multiplication per result instead of two.
class AbsorbScales : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (n.op == ops::quantize() && into_factors(n)) continue;
      push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool into_factors(const Node& n) {
    const ValueId scale = input(n, 1);
    if (scale == kNone || !is_scalar(scale) || type(n.inputs[0]).dtype != DType::kFloat32 ||
        type(scale).dtype != DType::kFloat32 || !constant(scale) ||
        !(number_at(*constant(scale), 0) > 0) || !has_factors(n.inputs[0], 0))
      return false;
    const ValueId by = op(ops::div(), {number(1, DType::kFloat32), reshape(scale, {})});
    Node scaled = n;
    scaled.inputs[0] = with_factor(n.inputs[0], by);
    scaled.inputs[1] = kNone;
    push(std::move(scaled));
    return true;
  }
  static constexpr int kDeepest = 6;
  bool has_factors(ValueId v, int depth) const {
    if (is_fixed(v)) return true;
    const NodeRef n = producer(v);
    if (!n || depth > kDeepest) return false;
    if (n->op == ops::dequantize()) return true;  // cheap enough to be there twice
    if (!used_once(v)) return false;
    if (n->op == ops::mul()) return is_fixed(n->inputs[1]);
    if (n->op == ops::relu()) return has_factors(n->inputs[0], depth + 1);
    return n->op == ops::add() && has_factors(n->inputs[0], depth + 1) &&
           has_factors(n->inputs[1], depth + 1);
  }
  ValueId with_factor(ValueId v, ValueId by) {
    if (is_fixed(v)) return op(ops::mul(), {v, by});
    const Node n = *producer(v);
    if (n.op == ops::dequantize())
      return op(ops::dequantize(), {n.inputs[0], op(ops::mul(), {n.inputs[1], by}), input(n, 2)},
                n.attributes);
    if (n.op == ops::mul()) return op(ops::mul(), {n.inputs[0], op(ops::mul(), {n.inputs[1], by})});
    if (n.op == ops::relu()) return op(ops::relu(), {with_factor(n.inputs[0], by)});
    const ValueId a = with_factor(n.inputs[0], by), b = with_factor(n.inputs[1], by);
    return op(ops::add(), {a, b});
  }
};

}  // namespace

Graph absorb_scales(Graph graph) { return AbsorbScales(std::move(graph)).run(); }

}  // namespace tilewright::passes
