// Types and known values of one node: the step that import and passes repeat over a graph.
#pragma once

#include "ir/graph/graph.h"
#include "ir/graph/op.h"

namespace tilewright::ir {

// Sets the types of the node's outputs from its operands, and their elements where these follow
// from known operands (shape computations). The node's output values exist already.
Status infer_node(Graph& graph, Node& node);

// Extents that are not all known, and that the types of the node's results take for equal.
std::vector<std::pair<Expr, Expr>> equal_extents(const Graph& graph, const Node& node);

// Returns every condition that the node's result types assume about unknown extents: equalities, what
// the operator requires, and that no extent is negative. Empty if inference fails.
std::vector<Requirement> requirements_of(const Graph& graph, const Node& node);

// Appends a node, its outputs named after `name`, and infers it. outputs: how many are wanted.
// With a name in the place of the operator: there is such an operator.
Result<std::vector<ValueId>> add_node(Graph& graph, const OpDef* op, std::vector<ValueId> inputs,
                                      Attributes attributes, int outputs, const std::string& name,
                                      std::vector<std::string> sources,
                                      std::vector<std::shared_ptr<const Graph>> regions = {});

// By the operator's name.
Result<std::vector<ValueId>> add_node(Graph& graph, std::string_view op,
                                      std::vector<ValueId> inputs, Attributes attributes,
                                      int outputs, const std::string& name,
                                      std::vector<std::string> sources,
                                      std::vector<std::shared_ptr<const Graph>> regions = {});

// Elements of each output by running the operator's loops on expressions; nothing when an operand
// or an extent is not known or the tensors or expressions are large. Works for every operator that has a compute.
std::optional<std::vector<std::vector<Expr>>> known_outputs(const Graph& graph, const Node& node);

}  // namespace tilewright::ir
