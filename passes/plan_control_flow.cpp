// Control flow in the program: regions become blocks; what they capture is read where it lies, what
// they give is written into the buffers of the node's outputs.
#include <algorithm>

#include "ir/graph/compute.h"
#include "ir/loops/rewrite.h"
#include "ir/ops/control_flow.h"
#include "ir/ops/known_ops.h"
#include "passes/analysis/views.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A kernel that writes values of integer expressions into one int64 buffer.
GroupKernel expressions_kernel(const std::vector<Expr>& values, const Node& node) {
  Buffer out = make_buffer("symbols", DType::kInt64, {Expr(static_cast<int64_t>(values.size()))});
  std::vector<Stmt> stores;
  std::set<const ExprNode*> seen;
  GroupKernel g;
  for (size_t k = 0; k < values.size(); ++k) {
    stores.push_back(store(out, {Expr(static_cast<int64_t>(k))}, values[k]));
    for (const Var& v : free_vars_in_order(values[k]))
      if (seen.insert(v.get()).second) g.kernel.scalars.push_back(v);
  }
  LoopsBuilder builder;
  builder.opaque(seq(std::move(stores)), "extents");
  g.kernel.name = "extents";
  g.kernel.params = {out};
  g.kernel.body = builder.finish();
  g.params = {kNone};
  g.sources = node.sources;
  return g;
}

}  // namespace

int32_t Planner::new_block() {
  program_.blocks.emplace_back();
  return static_cast<int32_t>(program_.blocks.size()) - 1;
}
int32_t Planner::scalar_buffer(const std::string& name, DType dtype) {
  ProgramBuffer b;
  b.name = name;
  b.type = {dtype, {}};
  return new_buffer(std::move(b));
}
// Lets the kernel that makes v write into the given buffer; a copy does it for views and values
// from outside.
void Planner::write_directly(GraphPlan& inner, ValueId v, int32_t buffer_id) {
  const Value& value = inner.graph.value(v);
  if (value.producer < 0 || value.constant ||
      is_view(inner.graph, inner.graph.nodes[static_cast<size_t>(value.producer)]))
    return;
  inner.buffers.emplace(v, buffer_id);
}

Status Planner::emit_control(GraphPlan& g, const Node& node) {
  if (node.op == ops::if_()) return emit_if(g, node);
  if (node.op == ops::loop()) return emit_loop(g, node);
  if (node.op == ops::checked_indices()) return emit_check(g, node);
  if (node.op == ops::run_key()) {
    at(buffer(g, node.outputs[0])).kind = StorageKind::kRunKey;
    return {};
  }
  TW_CHECK(node.op == ops::fail());
  FailInstruction fail;
  fail.message = std::get<std::string>(node.attributes.at("message"));
  push(g, std::move(fail));
  return {};
}

// The checked indices are a view of the indices.
Status Planner::emit_check(GraphPlan& g, const Node& node) {
  CheckIndicesInstruction check{buffer(g, node.inputs[0]), buffer(g, node.inputs[1]),
                                *NodeView(g.graph, node).attr_extents("extents"),
                                std::get<int64_t>(node.attributes.at("dim")),
                                std::get<std::string>(node.attributes.at("node"))};
  const int32_t view = buffer(g, node.outputs[0]);
  at(view).alias_of = check.indices;
  at(view).view = {};
  at(view).dynamic = false;
  push(g, std::move(check));
  return {};
}

Status Planner::emit_if(GraphPlan& g, const Node& node) {
  for (const Var& s : node.defined_symbols) define_at_run(s);
  std::vector<int32_t> outputs;
  for (ValueId v : node.outputs) outputs.push_back(v == kNone ? -1 : buffer(g, v));
  for (int32_t b : outputs)  // of a size that the branches do not define
    if (b >= 0 && at(b).dynamic && node.defined_symbols.empty()) push(g, AllocateInstruction{b});
  IfInstruction branch{buffer(g, node.inputs[0]), -1, -1};
  TW_RETURN_IF_ERROR(emit_branch(g, node, 0, outputs, branch.then_block));
  TW_RETURN_IF_ERROR(emit_branch(g, node, 1, outputs, branch.else_block));
  push(g, branch);
  return {};
}

Status Planner::emit_branch(GraphPlan& g, const Node& node, size_t region,
                            const std::vector<int32_t>& outputs, int32_t& block) {
  const Graph& graph = *node.regions[region];
  block = new_block();
  GraphPlan inner(graph, block);
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    inner.buffers[graph.inputs[k]] = buffer(g, node.inputs[k + 1]);
  const bool sized = node.defined_symbols.empty();
  for (size_t k = 0; sized && k < outputs.size(); ++k)
    if (outputs[k] >= 0) write_directly(inner, graph.outputs[k], outputs[k]);
  TW_RETURN_IF_ERROR(write_block(inner));
  if (!sized) {
    std::vector<Expr> extents;
    for (const auto& [output, dim] : disagreeing_dims(node))
      extents.push_back(graph.value(graph.outputs[static_cast<size_t>(output)])
                            .type.dims[static_cast<size_t>(dim)]);
    GroupKernel kernel = expressions_kernel(extents, node);
    TW_RETURN_IF_ERROR(define_symbols(inner, kernel, {}, node.defined_symbols, ""));
    for (int32_t b : outputs)
      if (b >= 0 && at(b).dynamic) push(inner, AllocateInstruction{b});
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] < 0) continue;
    const int32_t from = buffer(inner, graph.outputs[k]);
    if (from != outputs[k]) push(inner, CopyInstruction{outputs[k], from});
  }
  return {};
}

// The buffer of carried value k, with its initial value.
Status Planner::start_state(GraphPlan& g, const Node& node, int k, int32_t& state) {
  const LoopShape shape = loop_shape(node);
  const ValueId initial = node.inputs[static_cast<size_t>(shape.first_initial() + k)];
  const auto index = static_cast<size_t>(k);
  if (index < node.outputs.size() && node.outputs[index] != kNone) {
    state = buffer(g, node.outputs[index]);
  } else {
    ProgramBuffer b;
    b.name = "carried";
    b.type = g.graph.value(initial).type;
    state = new_buffer(std::move(b));
  }
  if (at(state).dynamic)
    return needs_value(describe(node) + ": the shape of carried value " + std::to_string(k) + ", " +
                       to_string(at(state).type) + ", is not known at compile time");
  push(g, CopyInstruction{state, buffer(g, initial)});
  return {};
}

Status Planner::emit_loop(GraphPlan& g, const Node& node) {
  const LoopShape shape = loop_shape(node);
  const Graph& body = *node.regions[0];
  LoopInstruction loop;
  loop.body = new_block();
  GraphPlan inner(body, loop.body);
  if (node.inputs[0] != kNone) loop.trip_count = buffer(g, node.inputs[0]);
  if (node.inputs[1] != kNone) loop.initial_condition = buffer(g, node.inputs[1]);
  inner.buffers[body.inputs[0]] = loop.iteration = scalar_buffer("iteration", DType::kInt64);
  for (int k = 0; k < shape.carried; ++k) {
    int32_t state = -1;
    TW_RETURN_IF_ERROR(start_state(g, node, k, state));
    inner.buffers[body.inputs[static_cast<size_t>(k) + 1]] = state;
    loop.carried.emplace_back(state, -1);
  }
  for (size_t k = static_cast<size_t>(shape.carried) + 1; k < body.inputs.size(); ++k)
    inner.buffers[body.inputs[k]] = buffer(g, node.inputs[k + 1]);
  TW_RETURN_IF_ERROR(write_block(inner));

  auto computed = [&](int k) { return buffer(inner, body.outputs[static_cast<size_t>(k)]); };
  if (shape.has_condition) loop.body_condition = computed(0);
  for (int k = 0; k < shape.carried; ++k)
    loop.carried[static_cast<size_t>(k)].second = computed(shape.first_carried_result() + k);
  std::erase_if(loop.carried, [](const auto& c) { return c.first == c.second; });
  if (!node.defined_symbols.empty()) {
    define_at_run(node.defined_symbols[0]);
    loop.count = node.defined_symbols[0];
  }
  for (int k = 0; k < shape.scans; ++k) {
    const auto output = static_cast<size_t>(shape.carried + k);
    if (output < node.outputs.size() && node.outputs[output] != kNone)
      loop.scans.emplace_back(computed(shape.first_scan_result() + k),
                              buffer(g, node.outputs[output]));
  }
  push(g, std::move(loop));
  return {};
}

}  // namespace tilewright::passes
