// THE list of passes, in order.
#include "passes/lower.h"

#include "passes/loops/loop_passes.h"
#include "passes/pipeline.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

using ir::Stage;

std::span<const GraphPass> graph_passes() {
  static constexpr GraphPass kPasses[] = {
      // Results that nobody uses are gone, and each computation is there once.
      {"eliminate_dead_nodes", [](ir::Graph g, const LowerOptions&) -> Result<ir::Graph> { return eliminate_dead_nodes(std::move(g)); }},
      {"eliminate_common_nodes", [](ir::Graph g, const LowerOptions&) -> Result<ir::Graph> { return eliminate_common_nodes(std::move(g)); }},
      // What depends on constants alone is a constant.
      {"fold_constants", [](ir::Graph g, const LowerOptions& o) -> Result<ir::Graph> {
         if (!o.fold) return g;
         return fold_constants(std::move(g), o.run_constants);
       }},
      // Every node has its group: one group, one kernel.
      {"fuse_operators", [](ir::Graph g, const LowerOptions& o) -> Result<ir::Graph> {
         return o.fuse ? fuse_operators(std::move(g)) : leave_unfused(std::move(g));
       }},
  };
  return kPasses;
}

std::span<const KernelPass> schedule_passes() { return {}; }

std::span<const KernelPass> loop_passes() {
  static constexpr KernelPass kPasses[] = {
      // Blocks give way to their bodies.
      {"lower_blocks", Stage::kScheduled, on_body<lower_blocks>},
      // Every access has one index, the address in its storage.
      {"flatten_buffers", Stage::kFlat, on_body<flatten_buffers>},
      {"simplify_loops", Stage::kFlat, on_body<[](const ir::Stmt& s) { return simplify_loops(s); }>},
      // Conditions that fail only at the end of a loop leave its main part.
      {"partition_tails", Stage::kFlat, on_body<partition_tails>},
      {"vectorize_loops", Stage::kFlat, on_body<vectorize_loops>},
      {"unroll_loops", Stage::kFlat, on_body<unroll_loops>},
  };
  return kPasses;
}

Result<ir::Graph> lower_graph(ir::Graph graph, const LowerOptions& options) {
  return run_pipeline(graph_passes(), std::move(graph), options);
}
Result<ir::Kernel> schedule_kernel(ir::Kernel kernel, const LowerOptions& options) {
  return run_pipeline(schedule_passes(), std::move(kernel), {options, {}});
}
Result<ir::Kernel> lower_to_flat(ir::Kernel kernel, const LowerOptions& options) {
  return run_pipeline(loop_passes(), std::move(kernel), {options, {}});
}

Result<ir::Program> lower(ir::Graph graph, const LowerOptions& options) {
  TW_ASSIGN(graph, lower_graph(std::move(graph), options));
  return plan_program(graph, [&](ir::Kernel k) -> Result<ir::Kernel> {
    TW_ASSIGN(k, schedule_kernel(std::move(k), options));
    return lower_to_flat(std::move(k), options);
  });
}

}  // namespace tilewright::passes
