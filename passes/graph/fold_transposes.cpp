// Transposes of matrices around a product are flags of the product: exporters write a linear layer as
// x W^T with a node for the transpose, and its gradient is transposed back. Matrices known at the run
// alone would be copied for that.
//
// Of several matrices, as the heads of an attention are, the transpose has an order of them left to do: rows stay
// whole then, and its result can lie where its operand does.
#include <algorithm>
#include <utility>

#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class FoldTransposes : public GraphRewriter {
 public:
  // of_several: of products of several matrices, or of two.
  FoldTransposes(Graph graph, bool of_several)
      : GraphRewriter(std::move(graph)), of_several_(of_several) {}
  Graph run() {
    bool changed = false;
    for (Node& n : old_) {
      follow(n);
      if (is_product(n)) changed |= take_operands(n);
      if (give_transposed(n)) {
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
  bool fits(ValueId v) const { return of_several_ ? type(v).rank() > 2 : type(v).rank() == 2; }
  std::vector<int64_t> order_of(const Node& n) const {
    return n.op == ops::transpose() && fits(n.inputs[0]) ? NodeView(graph_, n).attr_ints("perm")
                                                         : std::vector<int64_t>{};
  }
  // Of an order that ends with dimensions in turn: what it leaves to do when they stay.
  static std::vector<int64_t> with_last_swapped(std::vector<int64_t> order) {
    std::swap(order[order.size() - 2], order.back());
    return order;
  }
  static std::vector<int64_t> with_dims_swapped(std::vector<int64_t> order) {
    const auto last = static_cast<int64_t>(order.size()) - 1;
    for (int64_t& d : order) d = d == last ? last - 1 : d == last - 1 ? last : d;
    return order;
  }
  ValueId ordered(ValueId v, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return v;
    return op(ops::transpose(), {v}, {{"perm", order}});
  }
  static bool flag(const Node& product, size_t i) {
    const auto found = product.attributes.find(kFlags[i]);
    return found != product.attributes.end() && std::get<int64_t>(found->second) != 0;
  }

  // Of each operand that is a transpose, what that was made of. One matrix for all rows of several goes on as
  // it is: these are rows of one product.
  bool take_operands(Node& product) {
    bool changed = false;
    for (size_t i = 0; i < 2; ++i) {
      const NodeRef made = producer(product.inputs[i]);
      const std::vector<int64_t> order = made ? order_of(*made) : std::vector<int64_t>{};
      if (order.empty() || order[order.size() - 2] + 1 != static_cast<int64_t>(order.size()) ||
          (of_several_ && !fits(product.inputs[1 - i])))
        continue;
      product.attributes[kFlags[i]] = int64_t{!flag(product, i)};
      product.inputs[i] = ordered(made->inputs[0], with_last_swapped(order));
      changed = true;
    }
    return changed;
  }
  // (A B)^T = B^T A^T.
  bool give_transposed(const Node& n) {
    const std::vector<int64_t> order = order_of(n);
    if (order.empty() || order.back() + 2 != static_cast<int64_t>(order.size())) return false;
    const NodeRef product = producer(n.inputs[0], ops::matmul());
    if (!product || !is_product(*product) || !used_once(n.inputs[0]) || !fits(product->inputs[0]) ||
        !fits(product->inputs[1]))
      return false;
    Attributes attributes = product->attributes;
    attributes["trans_a"] = int64_t{!flag(*product, 1)};
    attributes["trans_b"] = int64_t{!flag(*product, 0)};
    const ValueId a = product->inputs[1], b = product->inputs[0];
    replace(n.outputs[0],
            ordered(op(ops::matmul(), {a, b}, std::move(attributes)), with_dims_swapped(order)));
    return true;
  }

  const bool of_several_;
};

}  // namespace

Graph fold_transposes(Graph graph) { return FoldTransposes(std::move(graph), false).run(); }
Graph fold_batch_transposes(Graph graph) { return FoldTransposes(std::move(graph), true).run(); }

}  // namespace tilewright::passes
