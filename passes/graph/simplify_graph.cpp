// Algebra on the graph: per-channel factors go into the constant operand of convolutions and matrix
// products.
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Extents of a constant, leading ones dropped up to `rank` dimensions, aligned right; nothing when
// it has more.
std::optional<Shape> aligned(const Constant& c, int rank) {
  Shape s = c.shape;
  while (static_cast<int>(s.size()) > rank && s.front() == 1) s.erase(s.begin());
  if (static_cast<int>(s.size()) > rank) return std::nullopt;
  s.insert(s.begin(), static_cast<size_t>(rank) - s.size(), 1);
  return s;
}

class ScaleWeights {
 public:
  explicit ScaleWeights(Graph& graph) : graph_(graph) {}

  // y = mul(p, factor) with p = conv(x, w) or matmul(x, w): the shape `factor` must take to
  // multiply w; nothing when it varies along more than the output channels.
  std::optional<Shape> shape_on_weights(const Node& producer, const Constant& factor) const {
    const Value& w = graph_.value(producer.inputs[1]);
    const int rank = graph_.value(producer.outputs[0]).type.rank();
    auto s = aligned(factor, rank);
    if (!w.constant || !s) return std::nullopt;
    const bool conv = producer.op == ops::conv();
    const int channel = conv ? 1 : rank - 1;
    for (int d = 0; d < rank; ++d)
      if (d != channel && (*s)[static_cast<size_t>(d)] != 1) return std::nullopt;
    const int64_t n = (*s)[static_cast<size_t>(channel)];
    if (conv) {
      Shape r(w.constant->shape.size(), 1);
      r[0] = n;
      return n == 1 || n == w.constant->shape[0] ? std::optional(r) : std::nullopt;
    }
    if (w.constant->shape.size() != 2) return std::nullopt;
    NodeView view(graph_, producer);
    const bool transposed = view.attr_int("trans_b") != 0;
    if (n != 1 && n != w.constant->shape[transposed ? 0 : 1]) return std::nullopt;
    return transposed ? Shape{n, 1} : Shape{1, n};
  }

  Result<bool> run() {
    std::vector<int> uses = graph_.use_counts();
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    bool changed = false;
    for (Node& n : nodes) {
      if (n.op == ops::mul()) {
        TW_ASSIGN(bool done, try_scale(n, uses));
        if (done) {
          changed = true;
          continue;
        }
      }
      push(std::move(n));
    }
    return changed;
  }

 private:
  void push(Node n) {
    for (ValueId v : n.outputs)
      if (v != kNone) graph_.value(v).producer = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(n));
  }
  Result<bool> try_scale(const Node& mul, const std::vector<int>& uses) {
    for (int side : {0, 1}) {
      const ValueId p = mul.inputs[static_cast<size_t>(side)],
                    f = mul.inputs[static_cast<size_t>(1 - side)];
      const Value& product = graph_.value(p);
      if (!graph_.value(f).constant || product.producer < 0 ||
          static_cast<size_t>(p) >= uses.size() || uses[static_cast<size_t>(p)] != 1)
        continue;
      Node producer = graph_.nodes[static_cast<size_t>(product.producer)];
      if ((producer.op != ops::conv() && producer.op != ops::matmul()) ||
          !is_float(product.type.dtype) ||
          graph_.value(producer.inputs[1]).type.dtype != product.type.dtype)
        continue;  // halves whose product is f32 do not take its factors
      auto shape = shape_on_weights(producer, *graph_.value(f).constant);
      if (!shape) continue;
      Constant reshaped = *graph_.value(f).constant;
      reshaped.shape = *shape;
      const ValueId factor =
          graph_.add_constant("", std::make_shared<const Constant>(std::move(reshaped)));
      const std::string name = graph_.value(producer.inputs[1]).name;
      TW_ASSIGN(std::vector<ValueId> scaled,
                add_node(graph_, ops::mul(), {producer.inputs[1], factor}, {}, 1, name + ".scaled",
                         producer.sources));
      // The new product takes the place of the multiplication; the old one loses its only use.
      producer.inputs[1] = scaled[0];
      producer.sources.insert(producer.sources.end(), mul.sources.begin(), mul.sources.end());
      producer.outputs = {mul.outputs[0]};
      push(std::move(producer));
      return true;
    }
    return false;
  }
  Graph& graph_;
};

}  // namespace

Result<Graph> simplify_graph(Graph graph) {
  TW_ASSIGN(bool changed, ScaleWeights(graph).run());
  return changed ? eliminate_dead_nodes(std::move(graph)) : std::move(graph);
}

}  // namespace tilewright::passes
