// What an operator says of its gradient: nodes for the derivatives of a loss by its operands, made of
// the derivatives by its results (reverse mode; Griewank and Walther, "Evaluating Derivatives", 2008).
#pragma once

#include <string>
#include <vector>

#include "ir/formula/formula.h"
#include "ir/graph/op.h"

namespace tilewright::ir {

// One node of the forward graph, as OpDef::gradient sees it. What it adds is called after the node.
class GradientContext final : public NodeBuilder {
 public:
  // `node`: its index. `of_outputs`: by result of the node, kNone where the loss does not depend on it. `wanted`: by
  // operand, whether anybody asks.
  GradientContext(Graph& graph, size_t node, std::vector<ValueId> of_outputs,
                  std::vector<bool> wanted);

  // Operands and results, which are named as in NodeView. A result that nobody read is one now.
  bool has(int operand) const;
  V in(int operand);
  V out(int result = 0);
  // Attributes, axes, and what is known of operands.
  NodeView view() const { return {graph_, node_}; }

  // The derivative of the loss by a result, of the result's type.
  bool has_dy(int result = 0) const;
  V dy(int result = 0);  // zeros where there is none
  // Is the derivative by that operand asked for? A rule may give more.
  bool wants(int operand) const;
  // The derivative by an operand, or a part of it: parts are summed up. Where the operand was
  // broadcast, g has the larger shape, and what one element stood for is summed up here.
  void add(int operand, V g);
  // By the operator `transposed`, of a node that is linear in the operand.
  void add_transposed(int operand, int result = 0);
  // The adjoint of another operator that is linear in its first operand, of such extents: from `dy`, the
  // derivative by its result, to that by the operand. `others`: its other operands.
  V adjoint(std::string_view op, Attributes attributes, std::vector<Expr> extents, V dy,
            const std::vector<ValueId>& others);

  // Sums of g over what broadcasting repeated, in the type of v where that is one of floats. For an integer v,
  // which is a quantised value, the gradient keeps its float type.
  V sum_to(V g, ValueId v);

  // By operand; kNone where none was added.
  const std::vector<ValueId>& gradients() const { return gradients_; }

  Graph& graph() override { return graph_; }
  const Graph& graph() const override { return graph_; }
  std::vector<ValueId> ops(std::string_view name, std::vector<ValueId> inputs,
                           Attributes attributes, int outputs) override;
  [[noreturn]] void fail(const std::string& message) const override;

 private:
  Graph& graph_;
  size_t index_;  // of the node
  const Node node_;
  const std::vector<ValueId> of_outputs_;
  const std::vector<bool> wanted_;
  std::vector<ValueId> gradients_;
};

// By operand of graph.nodes[node]: the derivative of the loss, kNone where there is none. Errors
// (kUnsupported, naming the node): the operator has no rule, or none for this call of it.
Result<std::vector<ValueId>> gradient_of(Graph& graph, size_t node, std::vector<ValueId> of_outputs,
                                         std::vector<bool> wanted);

}  // namespace tilewright::ir
