// The gradient of an `if`: another one with the same condition, whose branches compute what those of the
// first do once more, and then backwards. Values of a branch are not kept: they would have to be results
// of the first `if`, made up in the branch that does not have them.
#include "ir/graph/infer.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/differentiation.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::ValueId;

namespace {

// The derivatives by some inputs of a branch, of the types of their operands: its inputs are those of the
// branch, then the derivatives by its results that are there.
Result<Graph> backwards(const Graph& branch, const Graph& outside,
                        const std::vector<ValueId>& of_outputs, const std::vector<size_t>& inputs,
                        const std::vector<ir::TensorType>& types) {
  Graph g = branch;
  g.name += ".gradient";
  std::vector<ValueId> of;
  for (size_t i : inputs) of.push_back(g.inputs[i]);
  Differentiation d(g, of);
  for (size_t r = 0; r < of_outputs.size(); ++r) {
    if (of_outputs[r] == kNone) continue;
    const ir::Value& dy = outside.value(of_outputs[r]);
    const ValueId given = g.add_value(dy.name, dy.type), y = branch.outputs[r];
    g.inputs.push_back(given);
    TW_ASSIGN(const ValueId own, with_extents(g, given, branch.value(y).type));
    TW_RETURN_IF_ERROR(d.seed(y, own));
  }
  TW_RETURN_IF_ERROR(d.run());
  g.outputs.clear();
  g.output_names.clear();
  for (size_t k = 0; k < of.size(); ++k) {
    TW_ASSIGN(ValueId v, d.gradient(of[k]));
    TW_ASSIGN(v, with_extents(g, v, types[k]));
    g.outputs.push_back(v);
    g.output_names.push_back(branch.value(of[k]).name + ".gradient");
  }
  return g;
}

}  // namespace

Result<std::vector<ValueId>> gradient_of_if(Graph& graph, size_t k,
                                            const std::vector<ValueId>& of_outputs,
                                            const std::vector<bool>& wanted) {
  const ir::Node node = graph.nodes[k];
  std::vector<size_t> inputs;  // of the branches, which the condition does not enter
  std::vector<ir::TensorType> types;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!wanted[i]) continue;
    inputs.push_back(i - 1);
    types.push_back(graph.value(node.inputs[i]).type);
  }
  std::vector<std::shared_ptr<const Graph>> branches;
  for (const auto& branch : node.regions) {
    TW_ASSIGN(Graph g, backwards(*branch, graph, of_outputs, inputs, types));
    branches.push_back(std::make_shared<const Graph>(std::move(g)));
  }
  std::vector<ValueId> operands = node.inputs;
  for (ValueId dy : of_outputs)
    if (dy != kNone) operands.push_back(dy);
  TW_ASSIGN(const auto found,
            ir::add_node(graph, ir::ops::if_(), operands, {}, static_cast<int>(inputs.size()),
                         ir::describe(node) + ".gradient", node.sources, std::move(branches)));
  std::vector<ValueId> by_operand(node.inputs.size(), kNone);
  for (size_t n = 0; n < inputs.size(); ++n) by_operand[inputs[n] + 1] = found[n];
  return by_operand;
}

}  // namespace tilewright::passes
