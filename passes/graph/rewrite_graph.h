// For passes that go through the nodes in order and put others in their place.
#pragma once

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/decisions/decisions.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

// A node among those put back, or none. It stays the same one when a new node moves all others.
class NodeRef {
 public:
  NodeRef() = default;
  NodeRef(const std::vector<ir::Node>& nodes, size_t at) : nodes_(&nodes), at_(at) {}
  explicit operator bool() const { return nodes_ != nullptr; }
  const ir::Node* operator->() const { return &(*nodes_)[at_]; }
  const ir::Node& operator*() const { return (*nodes_)[at_]; }

 private:
  const std::vector<ir::Node>* nodes_ = nullptr;
  size_t at_ = 0;
};

// The nodes are taken out of the graph; a derived class puts each back (push) or new ones (op), in
// an order in which producers stand before consumers.
class GraphRewriter {
 public:
  // decisions: of whoever asks for other graphs than the usual one; null: nobody does.
  explicit GraphRewriter(ir::Graph graph, Decisions* decisions = nullptr)
      : graph_(std::move(graph)),
        uses_(graph_.use_counts()),
        old_(std::move(graph_.nodes)),
        decisions_(decisions ? *decisions : usual_) {
    graph_.nodes.clear();
  }

 protected:
  ir::Graph graph_;
  std::vector<int> uses_;
  std::vector<ir::Node> old_;

  void push(ir::Node n) {
    for (ir::ValueId v : n.outputs)
      if (v != ir::kNone) graph_.value(v).producer = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(n));
  }
  // The operator applied to operands that fit it.
  ir::ValueId op(const ir::OpDef* applied, std::vector<ir::ValueId> inputs,
                 ir::Attributes attributes = {}, int outputs = 1) {
    auto made = ir::add_node(graph_, applied, std::move(inputs), std::move(attributes), outputs,
                             name_, sources_);
    TW_CHECK(made.ok());
    return made->at(0);
  }
  ir::ValueId cast(ir::ValueId v, DType to) {
    if (type(v).dtype == to) return v;
    return op(ir::ops::cast(), {v}, {{"to", std::string(tilewright::name(to))}});
  }
  ir::ValueId integers(const std::vector<int64_t>& values) {  // i64[n]
    return graph_.add_constant(
        "", ir::make_constant_of<int64_t>(DType::kInt64, {static_cast<int64_t>(values.size())},
                                          values));
  }
  // i64[n] of extents that may be symbolic: a constant where all are known.
  ir::ValueId integers(const std::vector<ir::Expr>& extents) {
    std::vector<int64_t> numbers;
    for (const ir::Expr& e : extents)
      if (auto n = ir::as_int(e)) numbers.push_back(*n);
    return numbers.size() == extents.size()
               ? integers(numbers)
               : op(ir::ops::extents(), {}, {{"extents", ir::Extents{extents}}});
  }
  // To extents that are numbers, or expressions.
  template <typename Extent = int64_t>
  ir::ValueId reshape(ir::ValueId v, const std::vector<Extent>& dims) {
    return op(ir::ops::reshape(), {v, integers(dims)}, {{"allowzero", int64_t{1}}});
  }
  ir::ValueId number(double value, DType t) {
    ir::ConstantRef c = t == DType::kFloat32
                            ? ir::make_constant_of<float>(t, {}, {static_cast<float>(value)})
                            : ir::make_constant_of<int32_t>(t, {}, {static_cast<int32_t>(value)});
    return graph_.add_constant("", std::move(c));
  }
  // The value `by`, of the newest node, takes the place of `old`.
  void replace(ir::ValueId old, ir::ValueId by) {
    TW_CHECK(graph_.nodes.back().outputs[0] == by);
    graph_.nodes.back().outputs[0] = old;
    graph_.value(old).producer = static_cast<int32_t>(graph_.nodes.size()) - 1;
    graph_.value(by).producer = -1;
  }
  // New nodes come from this one.
  void follow(const ir::Node& n) {
    sources_ = n.sources;
    name_ = graph_.value(n.outputs[0]).name;
  }
  const ir::TensorType& type(ir::ValueId v) const { return graph_.value(v).type; }
  const ir::ConstantRef& constant(ir::ValueId v) const { return graph_.value(v).constant; }
  // The node that makes v, among those put back; none for inputs and constants.
  NodeRef producer(ir::ValueId v) const {
    const int32_t p = graph_.value(v).producer;
    return p < 0 || constant(v) ? NodeRef() : NodeRef(graph_.nodes, static_cast<size_t>(p));
  }
  NodeRef producer(ir::ValueId v, const ir::OpDef* by) const {
    const NodeRef n = producer(v);
    return n && n->op == by ? n : NodeRef();
  }
  // A constant, or what will be one: it hangs on constants alone.
  bool is_fixed(ir::ValueId v) const {
    if (constant(v)) return true;
    const NodeRef n = producer(v);
    if (!n || !n->op->compute || n->inputs.empty()) return false;
    for (ir::ValueId i : n->inputs)
      if (i != ir::kNone && !is_fixed(i)) return false;
    return true;
  }
  bool used_once(ir::ValueId v) const {
    return static_cast<size_t>(v) < uses_.size() && uses_[static_cast<size_t>(v)] == 1;
  }
  Decisions& decisions() { return decisions_; }
  static ir::ValueId input(const ir::Node& n, size_t i) {
    return i < n.inputs.size() ? n.inputs[i] : ir::kNone;
  }
  bool is_scalar(ir::ValueId v) const {
    for (const ir::Expr& d : type(v).dims)
      if (!ir::is_one(d)) return false;
    return true;
  }

 private:
  std::vector<std::string> sources_;
  std::string name_;
  Decisions usual_;
  Decisions& decisions_;
};

}  // namespace tilewright::passes
