// The planner: one for a program, with one GraphPlan for the graph and each region inside of it.
#pragma once

#include <map>
#include <set>

#include "ir/graph/op.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

struct PlanStep {
  // kPlaced: nothing to do, as the results lie where they belong already.
  enum Kind { kKernel, kView, kPlaced, kSymbols, kControl } kind = kKernel;
  size_t node = 0;            // the last of its group
  std::vector<size_t> nodes;  // of a kernel
  GroupKernel group;
  std::vector<ir::ValueId> after;             // values that lie in the result, and are made before
  std::vector<ir::Requirement> requirements;  // of the run's extents
};

// A graph or region while its block is written.
struct GraphPlan {
  // `g` must outlive the plan; `block_id`: the program's block that its steps go to.
  GraphPlan(const ir::Graph& g, int32_t block_id)
      : graph(g), block(block_id), uses(g.use_counts()) {}
  const ir::Graph& graph;
  int32_t block;
  // By value: readers and graph outputs.
  std::vector<int> uses;
  // What the passes of plan_passes() find out, each from what is there before it.
  Aliases aliases;
  std::vector<PlanStep> steps;
  // What the planner keeps while it writes.
  std::set<int32_t> allocated;  // dynamic buffers that several kernels write parts of
  std::map<ir::ValueId, int32_t> buffers;
  std::map<ir::ValueId, std::vector<int32_t>>
      packed;                      // constants in the layouts that kernels want them in
  std::set<std::string> required;  // of extents, by this block
};

// Writes the program of one graph, once: run().
class Planner {
 public:
  // Borrows both.
  Planner(const LowerOptions& options, const LowerKernel& lower, int threads)
      : options_(options), lower_(lower), threads_(threads) {}
  // Errors: what lowering a kernel gives, kInternal for plans that break their rules.
  Result<ir::Program> run(const ir::Graph& graph);

 private:
  // plan_program.cpp
  Status write_block(GraphPlan& g);
  void declare_inputs(GraphPlan& g);
  std::vector<std::pair<int32_t, int32_t>> declare_outputs(GraphPlan& g);
  void add_symbol(const ir::Var& s);
  void define_at_run(const ir::Var& s);
  int32_t buffer(GraphPlan& g, ir::ValueId v);
  int32_t packed_constant(GraphPlan& g, ir::ValueId v, const ir::Layout& layout);
  int32_t new_buffer(ir::ProgramBuffer b);
  ir::ProgramBuffer& at(int32_t buffer_id) {
    return program_.buffers[static_cast<size_t>(buffer_id)];
  }
  Status require(GraphPlan& g, const ir::Requirement& r);
  Status require_known(GraphPlan& g);
  Status emit(GraphPlan& g, PlanStep& s);
  Status emit_kernel(GraphPlan& g, PlanStep& s);
  Status emit_symbols(GraphPlan& g, PlanStep& s);
  Status define_symbols(GraphPlan& g, GroupKernel& kernel, ir::CallInstruction call,
                        const std::vector<ir::Var>& symbols, const std::string& what);
  template <typename Instruction>
  void push(const GraphPlan& g, Instruction i) {
    program_.blocks[static_cast<size_t>(g.block)].emplace_back(std::move(i));
  }
  // lower_ahead.cpp
  int32_t number_of(const ir::Graph& graph, const GroupKernel& g);
  Result<LoweredKernel> lower_source(int32_t number) const;
  void lower_ahead(const GraphPlan& g, size_t first);

  // plan_program.cpp
  Status add_call(const ir::Graph& graph, GroupKernel& g, ir::CallInstruction& call);
  void add_profile(const ir::Graph& graph, const GroupKernel& g, ir::CallInstruction& call);

  // plan_control_flow.cpp
  Status emit_control(GraphPlan& g, const ir::Node& node);
  Status emit_check(GraphPlan& g, const ir::Node& node);
  Status emit_if(GraphPlan& g, const ir::Node& node);
  Status emit_branch(GraphPlan& g, const ir::Node& node, size_t region,
                     const std::vector<int32_t>& outputs, int32_t& block);
  Status emit_loop(GraphPlan& g, const ir::Node& node);
  Status start_state(GraphPlan& g, const ir::Node& node, int k, int32_t& state);
  int32_t new_block();
  int32_t scalar_buffer(const std::string& name, DType dtype);
  void write_directly(GraphPlan& inner, ir::ValueId v, int32_t buffer_id);

  const LowerOptions& options_;
  const LowerKernel& lower_;
  const int threads_;
  ir::Program program_;
  std::set<const ir::ExprNode*> run_symbols_;
  // Of each kernel, before lowering, and whether its parameters are constants; some may not be called yet.
  std::vector<std::pair<ir::Kernel, std::vector<bool>>> sources_;
  std::multimap<uint64_t, int32_t> by_hash_;        // into it
  std::map<int32_t, Result<LoweredKernel>> ahead_;  // by number, of those
};

// The passes over a plan. passes/plan_steps.cpp: a step for each group and for each node that
// defines symbols; passes/order_steps.cpp: each step after those whose results or symbols it needs,
// and without those that nobody needs; passes/share_kernels.cpp: the steps whose kernels differ in
// numbers alone get one kernel.
void collect_steps(GraphPlan& g);
void order_steps(GraphPlan& g);
void drop_unused_steps(GraphPlan& g);
void share_kernels(GraphPlan& g);
// By step, those that come before it.
using StepNeeds = std::vector<std::set<size_t>>;
// Adds what graphs do not say: those that read the memory of an input before a step that updates it there, where
// nothing needs the opposite. passes/wait_for_readers.cpp
void wait_for_readers(const GraphPlan& g, StepNeeds& needs);
// What a step reads: operands of its kernel, and what must lie in its result before.
std::vector<ir::ValueId> inputs_of(const PlanStep& s);
// passes/verify_plan.cpp: as text, for dumps; and the rules of plans: a value that lies in another
// lies in one that has memory of its own, with a place for each dimension; when ordered, steps read
// what earlier ones made, and there is a step for each result.
std::string to_text(const GraphPlan& g);
Status verify(const GraphPlan& g, bool ordered);

}  // namespace tilewright::passes
