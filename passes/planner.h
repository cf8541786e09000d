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
  std::vector<ir::ValueId> after;  // values that lie in the result, and are made before
  std::vector<ir::RequireInstruction> requirements;  // of the run's extents
};

// A graph or region while its block is written.
struct GraphPlan {
  GraphPlan(const ir::Graph& g, int32_t block_id)
      : graph(g), block(block_id), uses(g.use_counts()), aliases(choose_aliases(g)) {}
  const ir::Graph& graph;
  int32_t block;
  std::vector<int> uses;
  Aliases aliases;
  std::set<int32_t> allocated;  // dynamic buffers that several kernels write parts of
  std::map<ir::ValueId, int32_t> buffers;
  std::map<ir::ValueId, std::vector<int32_t>>
      packed;  // constants in the layouts that kernels want them in
  std::vector<PlanStep> steps;
  std::set<std::string> required;  // of extents, by this block
};

class Planner {
 public:
  explicit Planner(const LowerKernel& lower) : lower_(lower) {}
  Result<ir::Program> run(const ir::Graph& graph);

 private:
  // plan_program.cpp
  Status write_block(GraphPlan& g);
  void declare_inputs(GraphPlan& g);
  void declare_outputs(GraphPlan& g);
  void add_symbol(const ir::Var& s);
  void define_at_run(const ir::Var& s);
  int32_t buffer(GraphPlan& g, ir::ValueId v);
  int32_t packed_constant(GraphPlan& g, ir::ValueId v, const ir::Layout& layout);
  int32_t new_buffer(ir::ProgramBuffer b);
  ir::ProgramBuffer& at(int32_t buffer_id) {
    return program_.buffers[static_cast<size_t>(buffer_id)];
  }
  Status emit(GraphPlan& g, PlanStep& s);
  Status emit_kernel(GraphPlan& g, PlanStep& s);
  Status emit_symbols(GraphPlan& g, PlanStep& s);
  Status define_symbols(GraphPlan& g, GroupKernel& kernel, ir::CallInstruction call,
                        const std::vector<ir::Var>& symbols);
  template <typename Instruction>
  void push(const GraphPlan& g, Instruction i) {
    program_.blocks[static_cast<size_t>(g.block)].emplace_back(std::move(i));
  }
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

  const LowerKernel& lower_;
  ir::Program program_;
  std::set<const ir::ExprNode*> run_symbols_;
  std::multimap<uint64_t, int32_t> by_hash_;
  std::vector<std::pair<ir::Kernel, std::vector<bool>>>
      sources_;  // of each kernel, before lowering, and its constant parameters
};

// passes/plan_steps.cpp: the steps of a graph in the order of execution, without those that nobody
// needs.
std::vector<PlanStep> collect_steps(const ir::Graph& graph, const std::vector<int>& uses,
                                    const Aliases& aliases);
// passes/plan_requirements.cpp: what must hold of extents that only the run knows, so that the
// nodes of a kernel mean what they were compiled to, and it reads and writes what there is.
std::vector<ir::RequireInstruction> requirements_of(const ir::Graph& graph,
                                                    const std::vector<size_t>& nodes,
                                                    const ir::Kernel& kernel);
// passes/share_kernels.cpp: gives the steps whose kernels differ in numbers alone one kernel.
void share_kernels(GraphPlan& g);
// First and last use of every buffer, as instructions of the main block.
void set_lifetimes(ir::Program& program);

}  // namespace tilewright::passes
