// THE list of passes, in order.
#include "passes/lower.h"

#include "passes/loops/loop_passes.h"
#include "passes/plan_program.h"
#include "passes/schedule/default_schedule.h"

namespace tilewright::passes {

Result<ir::Graph> lower_graph(ir::Graph graph, const LowerOptions& options) {
  // Results that nobody uses are gone, and each computation is there once.
  graph = eliminate_dead_nodes(std::move(graph));
  graph = eliminate_common_nodes(std::move(graph));
  // What depends on constants alone is a constant.
  if (options.fold) {
    TW_ASSIGN(graph, fold_constants(std::move(graph), options.run_constants));
    // Factors per channel are in the weights; the products this leaves are constants again.
    TW_ASSIGN(graph, simplify_graph(std::move(graph)));
    TW_ASSIGN(graph, fold_constants(std::move(graph), options.run_constants));
  }
  // Values have their memory layout.
  if (options.schedule) graph = choose_layouts(std::move(graph));
  // Every node has its group: one group, one kernel.
  graph = options.fuse ? fuse_operators(std::move(graph)) : leave_unfused(std::move(graph));
  return graph;
}

Result<ir::Kernel> schedule_kernel(ir::Kernel kernel, const std::set<std::string>& constants, const LowerOptions& options) {
  if (options.schedule) default_schedule(kernel, {&options.machine, constants});
  return hoist_inits(std::move(kernel));
}

Result<ir::Kernel> lower_to_flat(ir::Kernel kernel, const LowerOptions&) {
  kernel.body = lower_blocks(kernel.body);
  kernel.body = simplify_loops(kernel.body);
  // Temporaries stand in the innermost loop that holds all their uses.
  kernel.body = place_buffers(kernel.body);
  kernel.body = flatten_buffers(kernel.body);
  kernel.body = simplify_loops(kernel.body);
  kernel.body = partition_tails(kernel.body);
  kernel.body = vectorize_loops(kernel.body);
  kernel.body = unroll_loops(kernel.body);
  return kernel;
}

Result<ir::Program> lower(ir::Graph graph, const LowerOptions& options) {
  TW_ASSIGN(graph, lower_graph(std::move(graph), options));
  return plan_program(graph, [&](ir::Kernel k, const std::set<std::string>& constants) -> Result<ir::Kernel> {
    TW_ASSIGN(k, schedule_kernel(std::move(k), constants, options));
    return lower_to_flat(std::move(k), options);
  });
}

}  // namespace tilewright::passes
