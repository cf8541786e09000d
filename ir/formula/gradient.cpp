#include "ir/formula/gradient.h"

#include "ir/graph/broadcast.h"
#include "ir/graph/infer.h"
#include "ir/loops/make.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

// Thrown by rules, and caught where the rule was called.
struct GradientFailure {
  Error error;
};

size_t at(int i) { return static_cast<size_t>(i); }

}  // namespace

GradientContext::GradientContext(Graph& graph, size_t node, std::vector<ValueId> of_outputs,
                                 std::vector<bool> wanted)
    : graph_(graph),
      index_(node),
      node_(graph.nodes[node]),
      of_outputs_(std::move(of_outputs)),
      wanted_(std::move(wanted)),
      gradients_(node_.inputs.size(), kNone) {}

bool GradientContext::has(int operand) const { return view().has(operand); }
V GradientContext::in(int operand) {
  TW_CHECK(has(operand));
  return {*this, node_.inputs[at(operand)]};
}
V GradientContext::out(int result) {
  Node& node = graph_.nodes[index_];
  if (at(result) < node.outputs.size() && node.outputs[at(result)] != kNone)
    return {*this, node.outputs[at(result)]};
  while (node.outputs.size() <= at(result)) node.outputs.push_back(kNone);
  const std::string name = graph_.value(node.outputs[0]).name + "." + std::to_string(result);
  const ValueId v = graph_.add_value(name, {});
  graph_.value(v).producer = static_cast<int32_t>(index_);
  node.outputs[at(result)] = v;
  if (Status s = infer_node(graph_, node); !s.ok()) throw GradientFailure{s.error()};
  return {*this, v};
}

bool GradientContext::has_dy(int result) const {
  return at(result) < of_outputs_.size() && of_outputs_[at(result)] != kNone;
}
V GradientContext::dy(int result) {
  if (has_dy(result)) return {*this, of_outputs_[at(result)]};
  const V y = out(result);
  return y.make("expand", {y.number(0).id, dims(type(y.id).dims)});
}
bool GradientContext::wants(int operand) const {
  return has(operand) && at(operand) < wanted_.size() && wanted_[at(operand)];
}

V GradientContext::sum_to(V g, ValueId v) {
  const TensorType to = type(v);
  const int more = g.rank() - to.rank();
  TW_CHECK(more >= 0);
  std::vector<int64_t> repeated;
  for (int d = 0; d < g.rank(); ++d) {
    const bool is_more = d < more;
    const Expr extent = dim(g.id, d);
    if (is_more || (is_one(to.dims[at(d - more)]) && !is_one(extent))) repeated.push_back(d);
  }
  if (!repeated.empty()) g = reduce("reduce_sum", g, repeated);
  if (more > 0) {
    const std::vector<Expr> all = type(g.id).dims;
    g = V{*this, reshape(g.id, std::vector<Expr>(all.begin() + more, all.end()))};
  }
  // Extents that may be 1 at run time are summed by the adjoint of expand.
  const std::vector<Expr> wide = type(g.id).dims;
  bool repeats = false;
  for (size_t d = 0; d < wide.size(); ++d) repeats |= may_repeat(to.dims[d], wide[d]);
  if (repeats) g = adjoint("expand", {}, to.dims, g, {dims(wide)});
  return is_float(to.dtype) ? g.to(to.dtype) : g;
}
void GradientContext::add(int operand, V g) {
  if (!wants(operand)) return;
  ValueId& sum = gradients_[at(operand)];
  const V part = sum_to(g, node_.inputs[at(operand)]);
  sum = sum == kNone ? part.id : (V{*this, sum} + part).id;
}
// Operands: dy, then those of the node but for the one in question; attributes: those of the node,
// and what `transposed` asks of (ir/ops/transposed.cpp).
void GradientContext::add_transposed(int operand, int result) {
  if (!wants(operand)) return;
  std::vector<ValueId> operands{dy(result).id};
  for (int i = 0; i < static_cast<int>(node_.inputs.size()); ++i)
    if (i != operand) operands.push_back(node_.inputs[at(i)]);
  Attributes attributes = node_.attributes;
  attributes[kTransposedOp] = std::string(node_.op->name);
  attributes[kTransposedOperand] = static_cast<int64_t>(operand);
  attributes[kTransposedExtents] = Extents{type(node_.inputs[at(operand)]).dims};
  add(operand, {*this, op("transposed", std::move(operands), std::move(attributes))});
}

V GradientContext::adjoint(std::string_view op, Attributes attributes, std::vector<Expr> extents,
                           V dy, const std::vector<ValueId>& others) {
  std::vector<ValueId> operands{dy.id};
  operands.insert(operands.end(), others.begin(), others.end());
  attributes[kTransposedOp] = std::string(op);
  attributes[kTransposedOperand] = int64_t{0};
  attributes[kTransposedExtents] = Extents{std::move(extents)};
  return dy.make("transposed", std::move(operands), std::move(attributes));
}

std::vector<ValueId> GradientContext::ops(std::string_view name, std::vector<ValueId> inputs,
                                          Attributes attributes, int outputs) {
  const std::string label =
      node_.outputs.empty() ? "" : graph_.value(node_.outputs[0]).name + ".gradient";
  auto r = add_node(graph_, name, std::move(inputs), std::move(attributes), outputs, label,
                    node_.sources);
  if (!r.ok()) throw GradientFailure{std::move(r.error())};
  return std::move(r).value();
}
void GradientContext::fail(const std::string& message) const {
  throw GradientFailure{unsupported(message, describe(node_))};
}

Result<std::vector<ValueId>> gradient_of(Graph& graph, size_t node, std::vector<ValueId> of_outputs,
                                         std::vector<bool> wanted) {
  const OpDef* op = graph.nodes[node].op;
  if (!op->gradient) return unsupported("has no gradient", describe(graph.nodes[node]));
  GradientContext context(graph, node, std::move(of_outputs), std::move(wanted));
  try {
    op->gradient(context);
  } catch (GradientFailure& f) { return std::move(f.error); }
  return context.gradients();
}

}  // namespace tilewright::ir
