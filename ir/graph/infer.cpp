#include "ir/graph/infer.h"

#include <algorithm>

#include "ir/graph/index_range.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

// Control flow and types that differ from what the graph declares are checked by their own passes.
// Elements are followed for small integers (shapes) and very small floats (scales of Resize).
bool worth_knowing(const TensorType& type) {
  constexpr int64_t kMost = 4096;
  auto shape = constant_shape(type);
  if (!shape) return false;
  auto n = tilewright::element_count(*shape);
  if (!n || *n > kMost) return false;
  return is_float(type.dtype) ? *n <= 8 : true;
}

// No tensor of more bytes or dimensions is made: a few bytes of a model can ask for any number.
constexpr int64_t kMostBytes = int64_t{64} << 30, kMostExtent = int64_t{1} << 31;
Status check_size(const Node& node, const TensorType& type) {
  if (type.dims.size() > kRankLimit)
    return limit_error(describe(node) + ": a result would have rank " +
                       std::to_string(type.dims.size()) + ", beyond the limit of " +
                       std::to_string(kRankLimit));
  auto shape = constant_shape(type);
  if (!shape) return {};
  if (std::any_of(shape->begin(), shape->end(), [](int64_t d) { return d < 0; }))
    return invalid(describe(node) + ": a result would be " + to_string(type) +
                   ", expected extents of at least 0");
  for (const int64_t d : *shape)
    if (d > kMostExtent)
      return limit_error(describe(node) + ": a result would be " + to_string(type) +
                         ", beyond the limit of 2^31 for one extent");
  auto n = tilewright::element_count(*shape);
  if (n && *n <= kMostBytes / byte_size(type.dtype)) return {};
  return limit_error(describe(node) + ": a result would be " + to_string(type) +
                     ", beyond the limit of 64 GiB for one tensor");
}

}  // namespace

// Type inference and constant propagation for one node, in topological order.
Status infer_node(Graph& graph, Node& node) {
  TW_CHECK(node.op && node.op->infer_type);
  InferContext context(graph, node);
  TW_RETURN_IF_ERROR(node.op->infer_type(context));
  TW_RETURN_IF_ERROR(check_known_indices(context));
  const auto& types = context.outputs();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    if (i >= types.size())
      return internal_error(describe(node) + ": output " + std::to_string(i) + " does not exist");
    Value& v = graph.value(node.outputs[i]);
    TW_RETURN_IF_ERROR(check_size(node, types[i]));
    v.type = types[i];
    v.known.reset();
  }
  const bool small = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
    return v == kNone || worth_knowing(graph.value(v).type);
  });
  if (!small || !node.op->compute || !node.op->fold) return {};
  if (auto known = known_outputs(graph, node))
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) graph.value(node.outputs[i]).known = std::move((*known)[i]);
  return {};
}

std::vector<std::pair<Expr, Expr>> equal_extents(const Graph& graph, const Node& node) {
  Node copy = node;
  InferContext context(graph, copy);
  if (Status s = copy.op->infer_type(context); !s.ok()) return {};
  return context.equal_extents();
}

std::vector<Requirement> requirements_of(const Graph& graph, const Node& node) {
  Node copy = node;
  InferContext context(graph, copy);
  if (Status s = copy.op->infer_type(context); !s.ok()) return {};
  std::vector<Requirement> all;
  const std::string who = describe(node);
  for (const auto& [a, b] : context.equal_extents()) all.push_back({a, b, Relation::kEqual, who});
  all.insert(all.end(), context.requirements().begin(), context.requirements().end());
  for (const TensorType& type : context.outputs())
    for (const Expr& d : type.dims)
      if (d && !as_int(d) && !can_prove(Expr(0) <= d))
        all.push_back({0, d, Relation::kAtMost, who + ": results must have at least 0 elements"});
  return all;
}

Result<std::vector<ValueId>> add_node(Graph& graph, const OpDef* op, std::vector<ValueId> inputs,
                                      Attributes attributes, int outputs, const std::string& name,
                                      std::vector<std::string> sources,
                                      std::vector<std::shared_ptr<const Graph>> regions) {
  TW_CHECK(op);
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.sources = std::move(sources);
  node.regions = std::move(regions);
  const auto number = static_cast<int32_t>(graph.nodes.size());
  for (int i = 0; i < outputs; ++i) {
    ValueId v = graph.add_value(outputs == 1 ? name : name + "." + std::to_string(i), {});
    graph.value(v).producer = number;
    node.outputs.push_back(v);
  }
  TW_RETURN_IF_ERROR(infer_node(graph, node));
  std::vector<ValueId> result = node.outputs;
  graph.nodes.push_back(std::move(node));
  return result;
}
Result<std::vector<ValueId>> add_node(Graph& graph, std::string_view op,
                                      std::vector<ValueId> inputs, Attributes attributes,
                                      int outputs, const std::string& name,
                                      std::vector<std::string> sources,
                                      std::vector<std::shared_ptr<const Graph>> regions) {
  return add_node(graph, find_op(op), std::move(inputs), std::move(attributes), outputs, name,
                  std::move(sources), std::move(regions));
}

}  // namespace tilewright::ir
