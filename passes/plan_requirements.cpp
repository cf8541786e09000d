// What the types of nodes assume of extents that only the run knows (a matrix product of [m, k] and [j, n]: k and j
// are equal) is required of the graph. This is collected before nodes are rewritten, so that it is still required where
// another node computes the result, or none. A kernel requires the same of its own nodes, and what its accesses need
// (build_loops.h).
#include <algorithm>

#include "ir/graph/infer.h"
#include "ir/loops/linear.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

Graph collect_requirements(Graph graph) {
  for (const Node& n : graph.nodes)
    for (Requirement& r : ir::requirements_of(graph, n)) {
      const bool known = std::any_of(graph.requirements.begin(), graph.requirements.end(),
                                     [&](const Requirement& other) {
                                       return r.relation == other.relation &&
                                              same_expr(r.a, other.a) && same_expr(r.b, other.b);
                                     });
      if (!known) graph.requirements.push_back(std::move(r));
    }
  return graph;
}

}  // namespace tilewright::passes
