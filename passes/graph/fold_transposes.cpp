// Transposes of matrices around a product are flags of the product: exporters write a linear layer as
// x W^T with a node for the transpose, and its gradient is transposed back. Matrices known at the run
// alone would be copied for that.
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class FoldTransposes : public GraphRewriter {
 public:
  explicit FoldTransposes(Graph graph) : GraphRewriter(std::move(graph)) {}
  Graph run() {
    bool changed = false;
    for (Node& n : old_) {
      follow(n);
      if (is_product(n)) changed |= take_operands(n);
      if (is_transpose(n) && give_transposed(n)) {
        changed = true;
        continue;
      }
      push(std::move(n));
    }
    return changed ? eliminate_dead_nodes(std::move(graph_)) : std::move(graph_);
  }

 private:
  static constexpr const char* kFlags[] = {"trans_a", "trans_b"};

  // Without zero points, which lie as the operands do.
  static bool is_product(const Node& n) {
    return n.op == ops::matmul() && input(n, 2) == kNone && input(n, 3) == kNone;
  }
  bool is_matrix(ValueId v) const { return type(v).rank() == 2; }
  bool is_transpose(const Node& n) const {
    return n.op == ops::transpose() && is_matrix(n.inputs[0]) &&
           NodeView(graph_, n).attr_ints("perm") == std::vector<int64_t>{1, 0};
  }
  static bool flag(const Node& product, size_t i) {
    const auto found = product.attributes.find(kFlags[i]);
    return found != product.attributes.end() && std::get<int64_t>(found->second) != 0;
  }

  // Of each operand that is a transpose, what that was made of.
  bool take_operands(Node& product) const {
    bool changed = false;
    for (size_t i = 0; i < 2; ++i) {
      const NodeRef made = producer(product.inputs[i], ops::transpose());
      if (!made || !is_transpose(*made)) continue;
      product.attributes[kFlags[i]] = int64_t{!flag(product, i)};
      product.inputs[i] = made->inputs[0];
      changed = true;
    }
    return changed;
  }
  // (A B)^T = B^T A^T.
  bool give_transposed(const Node& transpose) {
    const NodeRef product = producer(transpose.inputs[0], ops::matmul());
    if (!product || !is_product(*product) || !used_once(transpose.inputs[0]) ||
        !is_matrix(product->inputs[0]) || !is_matrix(product->inputs[1]))
      return false;
    Attributes attributes = product->attributes;
    attributes["trans_a"] = int64_t{!flag(*product, 1)};
    attributes["trans_b"] = int64_t{!flag(*product, 0)};
    const ValueId a = product->inputs[1], b = product->inputs[0];
    replace(transpose.outputs[0], op(ops::matmul(), {a, b}, std::move(attributes)));
    return true;
  }
};

}  // namespace

Graph fold_transposes(Graph graph) { return FoldTransposes(std::move(graph)).run(); }

}  // namespace tilewright::passes
