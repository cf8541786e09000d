// THE list of passes, in order.
#include "passes/lower.h"

#include <atomic>

#include "passes/decisions/decisions.h"
#include "passes/loops/loop_passes.h"
#include "passes/plan_program.h"
#include "passes/planner.h"
#include "passes/schedule/rules/choose_trace.h"

namespace tilewright::passes {

using ir::Graph;
using ir::Kernel;
using ir::Stage;

namespace {

template <bool keep_quantized>
Result<Graph> fold(Graph g, const LowerOptions& o) {
  if (!o.fold) return g;
  return fold_constants(std::move(g), o.run_constants, o.free_fold_bytes, keep_quantized);
}

template <Graph (*pass)(Graph)>
Result<Graph> always(Graph g, const LowerOptions&) {
  return pass(std::move(g));
}
template <auto pass>
Result<Graph> if_folding(Graph g, const LowerOptions& o) {
  if (!o.fold) return g;
  return pass(std::move(g));
}
template <Graph (*pass)(Graph)>
Result<Graph> if_fusing(Graph g, const LowerOptions& o) {
  return o.fuse ? pass(std::move(g)) : std::move(g);
}
template <Graph (*pass)(Graph)>
Result<Graph> if_scheduling(Graph g, const LowerOptions& o) {
  return o.schedule ? pass(std::move(g)) : std::move(g);
}

// The bodies of control flow go through the same passes. They share one budget of folded bytes: it
// is the model's, however many bodies it has.
Result<Graph> lower_regions(Graph g, const LowerOptions& o) {
  LowerOptions inside = o;
  int64_t regions = 0;
  for (const ir::Node& n : g.nodes) regions += static_cast<int64_t>(n.regions.size());
  inside.free_fold_bytes /= regions + 1;
  inside.inside = true;
  for (ir::Node& n : g.nodes)
    for (auto& region : n.regions) {
      TW_ASSIGN(Graph inner, lower_graph(*region, inside));
      region = std::make_shared<const Graph>(std::move(inner));
    }
  return g;
}

// The trace that is looked up, or else the one that rules choose. The kernel stays.
Result<Kernel> choose(Kernel k, const KernelContext& c) {
  const LowerOptions& o = c.options;
  if (o.find_schedule)
    if (auto found = o.find_schedule(k, c.constants)) {
      *c.trace = std::move(found->schedule);
      return k;
    }
  TW_ASSIGN(Choice choice, choose_trace(k, {.machine = &o.machine,
                                            .constants = c.constants,
                                            .answers = {},
                                            .rules = o.schedule}));
  *c.trace = std::move(choice.trace);
  return k;
}

}  // namespace

std::span<const GraphPass> graph_passes() {
  static constexpr GraphPass kPasses[] = {
      {"lower_regions", Change::kNothing, lower_regions},
      // What the model takes for granted of extents is required, whatever becomes of its nodes.
      {"collect_requirements", Change::kNothing, always<collect_requirements>},
      // Every convolution is an ordinary one. First, for clean-up and what looks for constants or
      // quantised weights take the nodes of the phases as those of the model.
      {"open_conv_transpose", Change::kSumOrder,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return open_conv_transpose(std::move(g), o.decisions);
       }},
      // Results that nobody uses are gone, and each computation is there once.
      {"eliminate_dead_nodes", Change::kNothing, always<eliminate_dead_nodes>},
      {"eliminate_common_nodes", Change::kNothing, always<eliminate_common_nodes>},
      {"find_quantized", Change::kNothing, if_folding<find_quantized>},
      // What depends on constants alone is a constant; quantised weights are still as they are
      // stored.
      {"fold_constants", Change::kNothing, fold<true>},
      // Gradients of slices are written where they belong (but for the sign of zeros).
      {"join_slices", Change::kSumOrder, always<join_slices>},
      // Products take matrices as they lie, and parameters change where products give their gradients.
      {"fold_transposes", Change::kSumOrder, always<fold_transposes>},
      {"update_by_pieces", Change::kNothing, if_fusing<update_by_pieces>},
      // No index that is used is out of range.
      {"check_indices", Change::kNothing,
       [](Graph g, const LowerOptions& o) { return check_indices(std::move(g), o.inside); }},
      // Interleaved results are finished before they are interleaved.
      {"sink_interleaving", Change::kNothing, if_fusing<sink_interleaving>},
      // Products of quantised operands are sums in i32 of products of bytes.
      {"quantize_contractions", Change::kIntegerSums, if_folding<quantize_contractions>},
      // What quantises them again has its scale in their factors.
      {"absorb_scales", Change::kRounding, if_folding<absorb_scales>},
      // And products of floats with weights of bytes, sums of products of 16 by 8 bits.
      {"round_activations", Change::kPrecision,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.fold ? round_activations(std::move(g), o.machine) : std::move(g);
       }},
      {"expand_zero_points", Change::kNothing, always<expand_zero_points>},
      {"fold_dequantized", Change::kNothing, fold<false>},
      // Divisors are factors.
      {"multiply_instead", Change::kRounding, if_folding<multiply_instead>},
      // Factors per channel are in the weights; the products this leaves are constants again.
      {"simplify_graph", Change::kRounding, if_folding<simplify_graph>},
      // Convolutions with small windows do with fewer products where that is faster.
      {"use_winograd", Change::kAlgorithm,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.fold && o.schedule ? use_winograd(std::move(g), o.machine, o.decisions)
                                     : std::move(g);
       }},
      {"fold_constants_again", Change::kNothing, fold<false>},
      // Operands are stored amid the padding that convolutions want around them.
      {"separate_padding", Change::kNothing,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.fuse && o.schedule ? separate_padding(std::move(g), o.decisions) : std::move(g);
       }},
      {"fuse_attention", Change::kRounding,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.fuse ? fuse_attention(std::move(g), o.decisions) : std::move(g);
       }},
      {"fold_batch_transposes", Change::kSumOrder, always<fold_batch_transposes>},
      // Kernels that join values have few blocks.
      {"split_wide_concats", Change::kNothing, always<split_wide_concats>},
      // Values have their memory layout.
      {"choose_layouts", Change::kNothing,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.schedule ? choose_layouts(std::move(g), o.machine, o.decisions) : std::move(g);
       }},
      {"separate_resize", Change::kRounding, if_scheduling<separate_resize>},
      // What is made of one value by an operation is made again by each that reads it.
      {"repeat_pointwise", Change::kNothing, if_fusing<repeat_pointwise>},
      // Every node has its group: one group, one kernel.
      {"fuse_operators", Change::kNothing,
       [](Graph g, const LowerOptions& o) -> Result<Graph> {
         return o.fuse ? fuse_operators(std::move(g), o.machine) : leave_unfused(std::move(g));
       }},
      // What is stored in few bytes is widened by those who read it.
      {"repeat_widening", Change::kNothing, if_fusing<repeat_widening>},
  };
  return kPasses;
}

std::span<const PlanPass> plan_passes() {
  static constexpr PlanPass kPasses[] = {
      // What a slice takes, a concat joins or a pad surrounds lies in the other value's memory.
      {"choose_aliases", false, [](GraphPlan& g) { g.aliases = choose_aliases(g.graph); }},
      {"collect_steps", false, collect_steps},
      {"order_steps", true, order_steps},
      {"drop_unused_steps", true, drop_unused_steps},
      // Kernels that differ in numbers alone read the numbers from constants.
      {"share_kernels", true, share_kernels},
  };
  return kPasses;
}

std::span<const KernelPass> schedule_passes() {
  static constexpr KernelPass kPasses[] = {
      // How the kernel runs is decided: the trace says it all. Kernels that are not exact may also
      // rescale sums (online softmax).
      {"choose_trace", Change::kSumOrder, Stage::kScheduled, choose},
      {"apply_trace", Change::kSumOrder, Stage::kScheduled,
       [](Kernel k, const KernelContext& c) -> Result<Kernel> {
         TW_ASSIGN(k, apply_trace(std::move(k), *c.trace));
         TW_RETURN_IF_ERROR(check_inits(k));
         return k;
       }},
  };
  return kPasses;
}

std::span<const KernelPass> loop_passes() {
  static constexpr auto simplify = on_body<[](const ir::Stmt& s) { return simplify_loops(s); }>;
  static constexpr KernelPass kPasses[] = {
      // Loops that operators write are vectorised as far as they may.
      {"auto_vectorize", Change::kNothing, Stage::kScheduled,
       [](Kernel k, const KernelContext& c) -> Result<Kernel> {
         if (c.options.schedule) k.body = auto_vectorize(k.body, c.options.machine);
         return k;
       }},
      // Blocks give way to their bodies.
      {"lower_blocks", Change::kNothing, Stage::kScheduled, on_body<lower_blocks>},
      {"simplify_blocks", Change::kNothing, Stage::kScheduled, simplify},
      // Temporaries stand in the innermost loop that holds all their uses.
      {"place_buffers", Change::kNothing, Stage::kScheduled, on_body<place_buffers>},
      // Every access has one index, the address in its storage, and padding holds zeros.
      {"flatten_buffers", Change::kNothing, Stage::kFlat, on_kernel<flatten_buffers>},
      {"simplify_loops", Change::kNothing, Stage::kFlat, simplify},
      // Selects with loop-invariant conditions leave the loops.
      {"unswitch_loops", Change::kNothing, Stage::kFlat, on_body<unswitch_loops>},
      // Conditions that fail only at the end of a loop leave its main part.
      {"partition_tails", Change::kNothing, Stage::kFlat, on_body<partition_tails>},
      // Borders of what is read leave the loops over its inside.
      {"peel_borders", Change::kNothing, Stage::kFlat, on_body<peel_borders>},
      {"vectorize_loops", Change::kNothing, Stage::kFlat, on_body<vectorize_loops>},
      {"unguard_loads", Change::kNothing, Stage::kFlat, on_body<unguard_loads>},
      {"lower_dots", Change::kNothing, Stage::kFlat, on_body<lower_dots>},
      {"unroll_loops", Change::kNothing, Stage::kFlat, on_body<unroll_loops>},
      // Strided accesses side by side are whole vectors, whose lanes are put in order.
      {"group_accesses", Change::kNothing, Stage::kFlat, on_body<group_accesses>},
      // Parallel loops one after the other share a fork.
      {"form_phases", Change::kNothing, Stage::kFlat, on_kernel<form_phases>},
      // Workspace buffers have their places, the kernel the size of its workspaces.
      {"plan_workspace", Change::kNothing, Stage::kPlanned, on_kernel<plan_workspace>},
      // Addresses among very many symbols are short.
      {"factor_long_sums", Change::kNothing, Stage::kPlanned, on_kernel<factor_long_sums>},
  };
  return kPasses;
}

std::span<const ProgramPass> program_passes() {
  static constexpr ProgramPass kPasses[] = {
      {"set_lifetimes", Change::kNothing,
       [](ir::Program p, const LowerOptions&) -> Result<ir::Program> {
         return set_lifetimes(std::move(p));
       }},
      // The caller may have what is complete before the run ends.
      {"start_ranges", Change::kNothing,
       [](ir::Program p, const LowerOptions& o) -> Result<ir::Program> {
         return start_ranges(std::move(p), o.starts);
       }},
  };
  return kPasses;
}

Result<Graph> lower_graph(Graph graph, const LowerOptions& options) {
  return run_pipeline(graph_passes(), std::move(graph), options);
}
Result<ScheduledKernel> schedule_kernel(Kernel kernel, const std::set<std::string>& constants,
                                        const LowerOptions& options) {
  Trace trace;
  TW_ASSIGN(kernel,
            run_pipeline(schedule_passes(), std::move(kernel), {options, constants, &trace}));
  return ScheduledKernel{std::move(kernel), std::move(trace)};
}
Result<Kernel> lower_to_flat(Kernel kernel, const LowerOptions& options) {
  return run_pipeline(loop_passes(), std::move(kernel), {options, {}, nullptr});
}

Result<ir::Program> lower(Graph graph, const LowerOptions& options) {
  const std::string model = "graph '" + graph.name + "'";
  const Answers known =
      options.find_answers && !options.decisions ? options.find_answers(graph) : Answers{};
  if (!known.empty()) {
    Decisions decisions(known);
    LowerOptions following = options;
    following.decisions = &decisions;
    auto program = lower(graph, following);
    if (program.ok()) return program;
  }
  TW_ASSIGN(graph, lower_graph(std::move(graph), options));
  if (options.decisions) TW_RETURN_IF_ERROR(options.decisions->check_answers(model));
  return lower_fused(graph, options);
}

Result<LoweredKernel> lower_kernel(Kernel kernel, const std::set<std::string>& constants,
                                   const LowerOptions& options) {
  TW_ASSIGN(ScheduledKernel s, schedule_kernel(std::move(kernel), constants, options));
  TW_ASSIGN(kernel, lower_to_flat(std::move(s.kernel), options));
  return LoweredKernel{std::move(kernel), to_string(s.trace)};
}
Result<ir::Program> lower_fused(const Graph& graph, const LowerOptions& options,
                                const LowerKernel& lower_one, int threads) {
  TW_ASSIGN(ir::Program program, plan_program(graph, options, lower_one, threads));
  program.numerics = options.numerics;
  return run_pipeline(program_passes(), std::move(program), options);
}
Result<ir::Program> lower_fused(const Graph& graph, const LowerOptions& options) {
  std::atomic<size_t> done{0};
  const auto lower_one = [&](Kernel k, const std::set<std::string>& constants) {
    if (options.on_kernel) options.on_kernel(done++);
    return lower_kernel(std::move(k), constants, options);
  };
  return lower_fused(graph, options, lower_one, options.threads);
}

}  // namespace tilewright::passes
