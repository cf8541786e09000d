// THE list of passes, in order.
#include "passes/lower.h"

#include "passes/loops/loop_passes.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

Result<ir::Graph> lower_graph(ir::Graph graph, const LowerOptions& options) {
  // Regions go through the same passes.
  for (ir::Node& n : graph.nodes)
    for (auto& region : n.regions) {
      TW_ASSIGN(ir::Graph inner, lower_graph(*region, options));
      region = std::make_shared<const ir::Graph>(std::move(inner));
    }
  // Results that nobody uses are gone, and each computation is there once.
  graph = eliminate_dead_nodes(std::move(graph));
  graph = eliminate_common_nodes(std::move(graph));
  // What depends on constants alone is a constant.
  if (options.fold) { TW_ASSIGN(graph, fold_constants(std::move(graph), options.run_constants)); }
  // Every node has its group: one group, one kernel.
  graph = options.fuse ? fuse_operators(std::move(graph)) : leave_unfused(std::move(graph));
  return graph;
}

Result<ir::Kernel> schedule_kernel(ir::Kernel kernel, const LowerOptions& options) {
  (void)options;
  return kernel;
}

Result<ir::Kernel> lower_to_flat(ir::Kernel kernel, const LowerOptions&) {
  kernel.body = lower_blocks(kernel.body);
  kernel.body = flatten_buffers(kernel.body);
  kernel.body = simplify_loops(kernel.body);
  kernel.body = partition_tails(kernel.body);
  kernel.body = vectorize_loops(kernel.body);
  kernel.body = unroll_loops(kernel.body);
  return kernel;
}

Result<ir::Program> lower(ir::Graph graph, const LowerOptions& options) {
  TW_ASSIGN(graph, lower_graph(std::move(graph), options));
  return plan_program(graph, [&](ir::Kernel k) -> Result<ir::Kernel> {
    TW_ASSIGN(k, schedule_kernel(std::move(k), options));
    return lower_to_flat(std::move(k), options);
  });
}

}  // namespace tilewright::passes
