#include "passes/analysis/views.h"

#include "ir/graph/op.h"
#include "ir/graph/view_layouts.h"
#include "ir/ops/known_ops.h"

namespace tilewright::passes {

using namespace ir;

bool is_view(const Graph& graph, const Node& node) {
  const bool transpose = node.op == ops::transpose();
  if (!transpose && node.op != ops::reshape()) return false;
  const Value &from = graph.value(node.inputs[0]), &to = graph.value(node.outputs[0]);
  const std::optional<Layout> layout =
      transpose ? transposed_layout(from.layout, NodeView(graph, node).attr_ints("perm"))
                : reshaped_layout(from.layout, from.type, to.type);
  return layout && is_same_order(*layout, to.layout, to.type);
}

}  // namespace tilewright::passes
