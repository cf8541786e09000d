// Weights stored in 8 bits beside a scale, in the forms that exporters write.
#include "ir/graph/op.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class FindQuantized : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (n.op == ops::mul() && (scaled_cast(n, 0) || scaled_cast(n, 1))) continue;
      if (n.op == ops::gather() && gather_stored(n)) continue;
      push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  // cast(bytes) * scale, where the scale is no larger than the bytes.
  bool scaled_cast(const Node& n, size_t k) {
    const NodeRef from = producer(n.inputs[k], ops::cast());
    const ValueId scale = n.inputs[1 - k];
    if (!from || !constant(from->inputs[0]) || byte_size(type(from->inputs[0]).dtype) != 1 ||
        !is_integer(type(from->inputs[0]).dtype) || type(scale).dtype != DType::kFloat32 ||
        type(n.outputs[0]).dtype != DType::kFloat32 ||
        element_count(n.outputs[0]) != element_count(from->inputs[0]))
      return false;
    replace(n.outputs[0], op(ops::dequantize(), {from->inputs[0], scale}));
    return true;
  }
  int64_t element_count(ValueId v) const {
    const auto shape = constant_shape(type(v));
    return shape ? tilewright::element_count(*shape).value_or(-1) : -1;
  }
  // Rows of dequantised weights: the rows are gathered, and their scales if each has its own.
  bool gather_stored(const Node& n) {
    const NodeRef from = producer(n.inputs[0], ops::dequantize());
    if (!from || !constant(from->inputs[0])) return false;
    const Node w = *from;
    NodeView view(graph_, n);
    const int rank = type(w.inputs[0]).rank();
    if (view.axis(rank) != 0) return false;
    for (size_t i = 1; i < w.inputs.size(); ++i)
      if (w.inputs[i] != kNone && !is_scalar(w.inputs[i]) && type(w.inputs[i]).rank() != rank)
        return false;
    auto rows_of = [&](ValueId v) {
      if (v == kNone) return kNone;
      if (is_scalar(v)) return reshape(v, {});
      // One for all rows stays as it is, and broadcasts.
      if (is_one(type(v).dims[0])) {
        const auto shape = constant_shape(type(v));
        return shape ? reshape(v, {shape->begin() + 1, shape->end()}) : kNone;
      }
      return op(ops::gather(), {v, n.inputs[1]}, n.attributes);
    };
    for (size_t i = 1; i < w.inputs.size(); ++i)
      if (w.inputs[i] != kNone && !constant_shape(type(w.inputs[i]))) return false;
    const ValueId rows = op(ops::gather(), {w.inputs[0], n.inputs[1]}, n.attributes),
                  scale = rows_of(w.inputs[1]), zero = rows_of(input(w, 2));
    replace(n.outputs[0], op(ops::dequantize(), {rows, scale, zero}, w.attributes));
    return true;
  }
};

}  // namespace

Graph find_quantized(Graph graph) { return FindQuantized(std::move(graph)).run(); }

}  // namespace tilewright::passes
