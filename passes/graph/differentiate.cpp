// Nodes are walked backwards; each passes what the loss changes with its results on to its operands
// by the rule of its operator (ir/formula/gradient.h), and what several readers of a value pass on is
// added up. Rules write ordinary nodes, which share forward values with the rest of the graph;
// everything behind this sees no difference between forward and backward.
#include "passes/graph/differentiate.h"

#include <algorithm>

#include "ir/formula/gradient.h"
#include "ir/graph/infer.h"
#include "ir/loops/linear.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/differentiation.h"
#include "runtime/core/dtype.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::ValueId;

namespace {

size_t at(ValueId v) { return static_cast<size_t>(v); }

bool is_active_integer(const Graph& graph, const std::vector<bool>& active, ValueId v) {
  return v != kNone && active[at(v)] && !is_float(graph.value(v).type.dtype);
}
// Returns whether integers that the node gives are quantised floats: those of quantize, and what an
// operator that has a gradient makes of such integers.
bool gives_quantized(const Graph& graph, const std::vector<bool>& depends, const Node& n) {
  return n.op == ir::ops::quantize() ||
         (n.op->gradient && std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
            return is_active_integer(graph, depends, v);
          }));
}

}  // namespace

std::vector<bool> depends_on(const Graph& graph, const std::vector<ValueId>& of) {
  std::vector<bool> depends(graph.values.size(), false);
  for (ValueId v : of) depends[at(v)] = true;
  for (const Node& n : graph.nodes) {
    if (n.op == ir::ops::stop_gradient()) continue;
    bool reads = false;
    for (ValueId v : n.inputs) reads |= v != kNone && depends[at(v)];
    for (ValueId v : n.outputs)
      if (v != kNone && reads)
        depends[at(v)] = is_float(graph.value(v).type.dtype) || gives_quantized(graph, depends, n);
  }
  return depends;
}

Result<ValueId> filled(Graph& graph, const ir::TensorType& like, double value) {
  const ir::TensorType type = like;  // nodes are added
  ir::ConstantRef number =
      type.dtype == DType::kFloat64
          ? ir::make_constant_of<double>(DType::kFloat64, {}, {value})
          : ir::make_constant_of<float>(DType::kFloat32, {}, {static_cast<float>(value)});
  ValueId x = graph.add_constant("", std::move(number));
  if (graph.value(x).type.dtype != type.dtype) {
    TW_ASSIGN(auto cast, ir::add_node(graph, ir::ops::cast(), {x},
                                      {{"to", std::string(name(type.dtype))}}, 1, "seed", {}));
    x = cast[0];
  }
  TW_ASSIGN(auto extents,
            ir::add_node(graph, ir::ops::extents(), {}, {{"extents", ir::Extents{type.dims}}}, 1,
                         "seed.extents", {}));
  TW_ASSIGN(auto r, ir::add_node(graph, ir::ops::expand(), {x, extents[0]}, {}, 1, "seed", {}));
  return r[0];
}

Result<ValueId> with_extents(Graph& graph, ValueId v, const ir::TensorType& like) {
  const std::vector<ir::Expr> dims = like.dims, &own = graph.value(v).type.dims;
  bool same = own.size() == dims.size();
  for (size_t d = 0; same && d < dims.size(); ++d) same = ir::same_expr(own[d], dims[d]);
  if (same) return v;
  const std::string name = graph.value(v).name;
  TW_ASSIGN(auto shape, ir::add_node(graph, ir::ops::extents(), {},
                                     {{"extents", ir::Extents{dims}}}, 1, name + ".extents", {}));
  TW_ASSIGN(auto r, ir::add_node(graph, ir::ops::reshape(), {v, shape[0]},
                                 {{"allowzero", int64_t{1}}}, 1, name, {}));
  return r[0];
}

Differentiation::Differentiation(Graph& graph, const std::vector<ValueId>& of)
    : graph_(graph),
      forward_(graph.nodes.size()),
      active_(depends_on(graph, of)),
      sums_(graph.values.size(), kNone) {}

Status Differentiation::seed(ValueId v, ValueId gradient) {
  ValueId& sum = sums_[at(v)];
  if (sum == kNone) {
    sum = gradient;
    return {};
  }
  const int32_t made_by = graph_.value(v).producer;
  TW_ASSIGN(auto both,
            ir::add_node(graph_, ir::ops::add(), {sum, gradient}, {}, 1,
                         graph_.value(v).name + ".gradient",
                         made_by < 0 ? std::vector<std::string>{}
                                     : graph_.nodes[static_cast<size_t>(made_by)].sources));
  sum = both[0];
  return {};
}

Status Differentiation::run() {
  for (size_t k = forward_; k-- > 0;) TW_RETURN_IF_ERROR(pass_on(k));
  if (obstacles_.empty()) return {};
  if (obstacles_.size() == 1) return obstacles_[0];
  Error all = unsupported(std::to_string(obstacles_.size()) + " nodes cannot be differentiated");
  for (const Error& e : obstacles_) all.notes.push_back(e.to_string());
  return all;
}

Result<ValueId> Differentiation::gradient(ValueId v) {
  return found(v) != kNone ? Result<ValueId>(found(v)) : filled(graph_, graph_.value(v).type, 0);
}

Status Differentiation::pass_on(size_t k) {
  const Node node = graph_.nodes[k];
  std::vector<ValueId> of_outputs;
  bool any = false;
  for (ValueId v : node.outputs) {
    of_outputs.push_back(v == kNone ? kNone : sums_[at(v)]);
    any |= of_outputs.back() != kNone;
  }
  std::vector<bool> wanted;
  bool wants = false;
  for (ValueId v : node.inputs) {
    wanted.push_back(v != kNone && active_[at(v)] &&
                     (is_float(graph_.value(v).type.dtype) || node.regions.empty()));
    wants |= wanted.back();
  }
  bool has_integers = false;
  for (ValueId v : node.inputs) has_integers |= is_active_integer(graph_, active_, v);
  if (any && has_integers && !node.regions.empty()) {
    obstacles_.push_back(
        unsupported("control flow that takes quantised integers has no gradient", describe(node)));
    return {};
  }
  if (!any || !wants) return {};
  auto by_operand = node.op == ir::ops::if_()    ? gradient_of_if(graph_, k, of_outputs, wanted)
                    : node.op == ir::ops::loop() ? gradient_of_loop(graph_, k, of_outputs, wanted)
                                                 : ir::gradient_of(graph_, k, of_outputs, wanted);
  if (!by_operand.ok()) {
    // Most rules of integers are not made for gradients that are floats.
    if (by_operand.error().kind != ErrorKind::kUnsupported && !has_integers)
      return by_operand.error();
    obstacles_.push_back(
        by_operand.error().kind == ErrorKind::kUnsupported
            ? by_operand.error()
            : unsupported("the gradient of '" + std::string(node.op->name) +
                              "' by quantised integers: " + by_operand.error().message,
                          by_operand.error().location));
    return {};
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (wanted[i] && (*by_operand)[i] != kNone)
      TW_RETURN_IF_ERROR(seed(node.inputs[i], (*by_operand)[i]));
  return {};
}

Result<std::vector<ValueId>> differentiate(Graph& graph, ValueId loss,
                                           const std::vector<ValueId>& of) {
  const ir::TensorType type = graph.value(loss).type;
  const auto shape = constant_shape(type);
  if (!is_float(type.dtype) || !shape || element_count(*shape) != 1)
    return invalid("the loss is " + to_string(type) + ", expected one number",
                   "value '" + graph.value(loss).name + "'");
  Differentiation d(graph, of);
  TW_ASSIGN(const ValueId one, filled(graph, type, 1));
  TW_RETURN_IF_ERROR(d.seed(loss, one));
  TW_RETURN_IF_ERROR(d.run());
  std::vector<ValueId> gradients;
  for (ValueId v : of) {
    TW_ASSIGN(const ValueId g, d.gradient(v));
    gradients.push_back(g);
  }
  return gradients;
}

}  // namespace tilewright::passes
