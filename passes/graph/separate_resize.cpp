// Resampling is separable: each row of the source is weighed along the other dimensions first, once
// for all results that it is a part of. That pays where elements of a row lie side by side.
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

Graph separate_resize(Graph graph) {
  for (Node& n : graph.nodes) {
    if (n.op != ops::resize()) continue;
    const Value& y = graph.value(n.outputs[0]);
    n.attributes["rows_first"] =
        static_cast<int64_t>(y.layout.empty() ? y.type.rank() - 1 : y.layout.back().dim);
  }
  return graph;
}

}  // namespace tilewright::passes
