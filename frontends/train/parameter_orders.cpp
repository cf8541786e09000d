// The weights of a linear layer, [outputs, inputs], are transposed for its product; so is a matrix [inputs, outputs]
// for the gradient by what the layer reads. A weight with both readers is as well one way as the other. Where
// nobody asks for that gradient, as in first layers and in new heads on a model that stays, the product is the
// only reader, and weights lie as it wants them.
#include "frontends/train/parameter_orders.h"

#include <map>

#include "frontends/train/step_update.h"
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"

namespace tilewright::train {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeView;
using ir::ValueId;

class Orders {
 public:
  explicit Orders(const Graph& step) : graph_(step), readers_(step.values.size()) {
    for (const Node& n : step.nodes)
      for (ValueId v : n.inputs)
        if (v != ir::kNone) readers_[static_cast<size_t>(v)].push_back(&n);
    for (ValueId v : step.inputs)
      if (step.value(v).name == kParameters) find_pieces(v);
  }
  // Is the parameter read once, as the transposed right operand of a product?
  bool is_read_transposed(const Parameter& p) const {
    const auto piece = pieces_.find(p.offset);
    if (piece == pieces_.end() || graph_.value(piece->second).type.rank() != 2) return false;
    bool transposed = false;
    ValueId v = piece->second;
    for (const Node* n = only_reader(v); n; n = only_reader(v)) {
      if (n->op == ir::ops::matmul())
        return n->inputs[1] == v && n->inputs[0] != v &&
               transposed != (NodeView(graph_, *n).attr_int("trans_b") != 0);
      if (n->op != ir::ops::transpose()) return false;
      transposed ^= NodeView(graph_, *n).attr_ints("perm") == std::vector<int64_t>{1, 0};
      v = n->outputs[0];
    }
    return false;
  }

 private:
  const std::vector<const Node*>& readers(ValueId v) const {
    return readers_[static_cast<size_t>(v)];
  }
  const Node* only_reader(ValueId v) const {
    return readers(v).size() == 1 ? readers(v)[0] : nullptr;
  }
  // Of the flat parameters, by where they begin.
  void find_pieces(ValueId flat) {
    for (const Node* n : readers(flat)) {
      if (n->op != ir::ops::slice()) continue;
      const auto start = NodeView(graph_, *n).known_ints(1);
      const Node* reshape = only_reader(n->outputs[0]);
      if (start && start->size() == 1 && reshape && reshape->op == ir::ops::reshape())
        pieces_[start->front()] = reshape->outputs[0];
    }
  }

  const Graph& graph_;
  std::vector<std::vector<const Node*>> readers_;  // by value
  std::map<int64_t, ValueId> pieces_;
};

}  // namespace

bool choose_orders(const Graph& step, Parameters& parameters) {
  const Orders orders(step);
  bool changed = false;
  for (Parameter& p : parameters.members) {
    if (!p.order.empty() || !orders.is_read_transposed(p)) continue;
    p.order = {1, 0};
    changed = true;
  }
  return changed;
}

}  // namespace tilewright::train
