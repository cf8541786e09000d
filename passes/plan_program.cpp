// Writing a program: buffers for values, calls for steps, symbols where the run defines extents.
// Kernels that are equal up to names are lowered once (structural_hash, then structurally_equal).
#include "passes/plan_program.h"

#include <algorithm>
#include <set>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/known_ops.h"
#include "ir/program/kernel_name.h"
#include "ir/text/printer_loops.h"
#include "passes/count_operations.h"
#include "passes/loops/loop_passes.h"
#include "passes/lower.h"
#include "passes/planner.h"
#include "passes/update_in_place.h"
#include "runtime/core/relations.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostDynamicElements = int64_t{1} << 40;

// Returns how a reshape or transpose maps the elements of its operand.
ViewMap map_of_view(const Graph& graph, const Node& node) {
  if (node.op != ops::transpose()) return {ViewMap::Kind::kReshaped, {}, {}};
  const std::vector<int64_t> perm = NodeView(graph, node).attr_ints("perm");
  return {ViewMap::Kind::kTransposed, {perm.begin(), perm.end()}, {}};
}

}  // namespace

Result<Program> Planner::run(const Graph& graph) {
  program_.name = graph.name;
  program_.blocks.emplace_back();
  GraphPlan main(graph, 0);
  declare_inputs(main);
  TW_RETURN_IF_ERROR(write_block(main));
  update_in_place(program_, declare_outputs(main));
  return std::move(program_);
}

Status Planner::write_block(GraphPlan& g) {
  TW_RETURN_IF_ERROR(run_pipeline(plan_passes(), g, options_));
  TW_RETURN_IF_ERROR(require_known(g));
  for (size_t i = 0; i < g.steps.size(); ++i) {
    if (i == 0 || g.steps[i - 1].kind == PlanStep::kControl) lower_ahead(g, i);
    const size_t symbols = program_.symbols.size();
    TW_RETURN_IF_ERROR(emit(g, g.steps[i]));
    if (program_.symbols.size() != symbols) TW_RETURN_IF_ERROR(require_known(g));
  }
  return {};
}

void Planner::declare_inputs(GraphPlan& g) {
  for (ValueId v : g.graph.inputs) {
    const int32_t b = buffer(g, v);
    at(b).kind = StorageKind::kInput;
    program_.inputs.push_back(b);
    for (const Expr& d : g.graph.value(v).type.dims)
      for (const Var& s : free_vars_in_order(d)) add_symbol(s);
  }
}
// Each result is a buffer under the name that the model gives it, but for those that update inputs: these
// are told.
std::vector<std::pair<int32_t, int32_t>> Planner::declare_outputs(GraphPlan& g) {
  std::vector<std::pair<int32_t, int32_t>> updates;
  for (const Graph::Update& u : g.graph.updates)
    updates.emplace_back(program_.inputs[static_cast<size_t>(u.input)],
                         buffer(g, g.graph.outputs[static_cast<size_t>(u.output)]));
  for (size_t k = 0; k < g.graph.outputs.size(); ++k) {
    if (std::any_of(g.graph.updates.begin(), g.graph.updates.end(),
                    [&](const Graph::Update& u) { return static_cast<size_t>(u.output) == k; }))
      continue;
    int32_t b = buffer(g, g.graph.outputs[k]);
    const std::string name = k < g.graph.output_names.size() ? g.graph.output_names[k] : at(b).name;
    const bool taken =
        at(b).kind != StorageKind::kTemporary;  // an input, a constant, or another result
    if (taken || std::count(program_.outputs.begin(), program_.outputs.end(), b)) {
      ProgramBuffer view = at(b);
      view.kind = StorageKind::kTemporary;
      view.constant = nullptr;
      view.alias_of = b;
      view.alias_offset = 0;
      view.view = {};
      view.dynamic = false;
      b = new_buffer(std::move(view));
    } else if (at(b).alias_of < 0) {
      at(b).kind = StorageKind::kOutput;
    }
    at(b).name = name;
    program_.outputs.push_back(b);
  }
  return updates;
}
void Planner::add_symbol(const Var& s) {
  for (const Var& known : program_.symbols)
    if (known.same_as(s)) return;
  program_.symbols.push_back(s);
}
void Planner::define_at_run(const Var& s) {
  add_symbol(s);
  run_symbols_.insert(s.get());
}

int32_t Planner::new_buffer(ProgramBuffer b) {
  b.elements = simplify(
      storage_elements(BufferNode{b.name, b.type.dtype, b.type.dims, b.layout, Scope::kParam}));
  // Extents count even where the storage has a fixed size: [0, n] holds nothing, whatever n is.
  std::vector<Expr> sizes = b.type.dims;
  sizes.push_back(b.elements);
  for (const Expr& e : sizes)
    for (const Var& s : free_vars_in_order(e))
      b.dynamic |= b.alias_of < 0 && run_symbols_.count(s.get()) != 0;
  program_.buffers.push_back(std::move(b));
  return static_cast<int32_t>(program_.buffers.size()) - 1;
}
int32_t Planner::buffer(GraphPlan& g, ValueId v) {
  auto it = g.buffers.find(v);
  if (it != g.buffers.end()) return it->second;
  const auto placed = g.aliases.find(v);
  if (placed != g.aliases.end() && !placed->second.offset)
    return g.buffers[v] = buffer(g, placed->second.in);
  const Value& value = g.graph.value(v);
  ProgramBuffer b;
  b.name = value.name.empty() ? "v" + std::to_string(v) : value.name;
  b.type = value.type;
  b.layout = value.layout;
  if (placed != g.aliases.end()) {
    b.alias_of = buffer(g, placed->second.in);
    b.alias_offset = *placed->second.offset;
    b.view = {ViewMap::Kind::kPart, placed->second.dim, placed->second.step};
  }
  if (value.constant) {
    b.kind = StorageKind::kConstant;
    b.constant = value.constant;
  }
  return g.buffers[v] = new_buffer(std::move(b));
}
// A constant that kernels want in several layouts is kept in each of them.
int32_t Planner::packed_constant(GraphPlan& g, ValueId v, const Layout& layout) {
  if (layout == g.graph.value(v).layout) return buffer(g, v);
  auto& made = g.packed[v];
  for (int32_t b : made)
    if (at(b).layout == layout) return b;
  const Value& value = g.graph.value(v);
  ProgramBuffer b;
  b.name = value.name.empty() ? "v" + std::to_string(v) : value.name;
  b.type = value.type;
  b.layout = layout;
  b.kind = StorageKind::kConstant;
  b.constant = value.constant;
  made.push_back(new_buffer(std::move(b)));
  return made.back();
}

// Emits the requirement unless it holds or this block has it already. A branch may never be taken: there one that is
// false is left to the run.
Status Planner::require(GraphPlan& g, const Requirement& r) {
  if (const auto a = as_int(r.a), b = as_int(r.b); a && b) {
    const bool either = r.relation == Relation::kBroadcast && (*a == 1 || *b == 1);
    if (*a == *b || either || (r.relation == Relation::kAtMost && *a < *b)) return {};
    if (g.block == 0)
      return invalid(to_string(r) + ", expected " +
                     std::string(kExpectedRelations[static_cast<size_t>(r.relation)]));
  }
  if (g.required.insert(to_text(r.a) + " " + std::string(name(r.relation)) + " " + to_text(r.b))
          .second)
    push(g, RequireInstruction{r.a, r.b, r.relation, to_string(r)});
  return {};
}
// Emits the graph's requirements whose symbols are all defined at this point.
Status Planner::require_known(GraphPlan& g) {
  const auto has_value = [&](const Var& s) {
    return std::any_of(program_.symbols.begin(), program_.symbols.end(),
                       [&](const Var& known) { return known.same_as(s); });
  };
  const auto is_known = [&](const Expr& e) {
    const std::vector<Var> symbols = free_vars_in_order(e);
    return std::all_of(symbols.begin(), symbols.end(), has_value);
  };
  for (const Requirement& r : g.graph.requirements)
    if (is_known(r.a) && is_known(r.b)) TW_RETURN_IF_ERROR(require(g, r));
  return {};
}

Status Planner::emit(GraphPlan& g, PlanStep& s) {
  const Node& node = g.graph.nodes[s.node];
  for (const Requirement& r : s.requirements) TW_RETURN_IF_ERROR(require(g, r));
  switch (s.kind) {
    case PlanStep::kView: {
      const int32_t from = buffer(g, s.group.params[0]), to = buffer(g, s.group.params[1]);
      at(to).alias_of = from;
      at(to).view = map_of_view(g.graph, node);
      at(to).dynamic = false;
      return {};
    }
    case PlanStep::kPlaced: return {};
    case PlanStep::kSymbols: return emit_symbols(g, s);
    case PlanStep::kControl: return emit_control(g, node);
    case PlanStep::kKernel: return emit_kernel(g, s);
  }
  return {};
}
Status Planner::emit_kernel(GraphPlan& g, PlanStep& s) {
  CallInstruction call;
  TW_RETURN_IF_ERROR(add_call(g.graph, s.group, call));
  for (size_t p = 0; p < s.group.params.size(); ++p) {
    const ValueId v = s.group.params[p];
    const Layout& layout = program_.kernels[static_cast<size_t>(call.kernel)].params[p]->layout;
    const int32_t b = g.graph.value(v).constant ? packed_constant(g, v, layout) : buffer(g, v);
    if (p >= s.group.num_inputs && at(b).dynamic) {
      const bool first = g.allocated.insert(b).second;
      if (first || !g.aliases.count(v)) push(g, AllocateInstruction{b});
    }
    call.buffers.push_back(b);
  }
  push(g, std::move(call));
  return {};
}
Status Planner::emit_symbols(GraphPlan& g, PlanStep& s) {
  CallInstruction call;
  for (size_t p = 0; p < s.group.num_inputs; ++p)
    call.buffers.push_back(buffer(g, s.group.params[p]));
  const Node& node = g.graph.nodes[s.node];
  std::string what;
  if (!node.op->symbols_rule.empty()) {
    what = describe(node);
    const NodeView view(g.graph, node);
    for (int k = 0; k < view.num_inputs(); ++k)
      if (view.has(k)) what += (k == 0 ? " of " : ", ") + to_string(view.type(k));
    what += ": " + std::string(node.op->symbols_rule);
  }
  return define_symbols(g, s.group, std::move(call), node.defined_symbols, what);
}
// The kernel writes one int64 for each symbol into its last parameter.
Status Planner::define_symbols(GraphPlan& g, GroupKernel& kernel, CallInstruction call,
                               const std::vector<Var>& symbols, const std::string& what) {
  TW_RETURN_IF_ERROR(add_call(g.graph, kernel, call));
  ProgramBuffer b;
  b.name = "symbols";
  b.type = {DType::kInt64, {Expr(static_cast<int64_t>(symbols.size()))}};
  const int32_t id = new_buffer(std::move(b));
  call.buffers.push_back(id);
  push(g, std::move(call));
  for (size_t k = 0; k < symbols.size(); ++k) {
    define_at_run(symbols[k]);
    push(g, DefineSymbolInstruction{symbols[k], id, static_cast<int64_t>(k), kMostDynamicElements,
                                    what});
  }
  return {};
}

Status Planner::add_call(const Graph& graph, GroupKernel& g, CallInstruction& call) {
  for (const Var& v : g.kernel.scalars) call.scalars.push_back(v);
  call.kernel = number_of(graph, g);
  if (static_cast<size_t>(call.kernel) == program_.kernels.size()) {
    auto ahead = ahead_.extract(call.kernel);
    TW_ASSIGN(LoweredKernel lowered, ahead ? std::move(ahead.mapped()) : lower_source(call.kernel));
    program_.kernels.push_back(std::move(lowered.kernel));
    program_.schedules.push_back(std::move(lowered.schedule));
  }
  add_profile(graph, g, call);
  return {};
}
void Planner::add_profile(const Graph& graph, const GroupKernel& g, CallInstruction& call) {
  call.profile = static_cast<int32_t>(program_.profile.size());
  Expr bytes = 0;
  for (size_t p = 0; p < g.kernel.params.size(); ++p) {
    const Buffer& b = g.kernel.params[p];
    const bool is_value = p < g.params.size() && g.params[p] != kNone;
    Expr n = byte_size(b->dtype);
    for (const Expr& d : is_value ? graph.value(g.params[p]).type.dims : b->shape) n = n * d;
    bytes = bytes + n;
  }
  program_.profile.push_back({g.sources, program_.kernels[static_cast<size_t>(call.kernel)].name,
                              count_flops(g.kernel), simplify(bytes)});
}

Result<Program> plan_program(const Graph& graph, const LowerOptions& options,
                             const LowerKernel& lower_kernel, int threads) {
  return Planner(options, lower_kernel, threads).run(graph);
}

}  // namespace tilewright::passes
