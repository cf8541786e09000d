// Nodes are walked backwards; each passes what the loss changes with its results on to its operands
// by the rule of its operator (ir/formula/gradient.h), and what several readers of a value pass on is
// added up. Rules write ordinary nodes, which share forward values with the rest of the graph;
// everything behind this sees no difference between forward and backward.
#include "passes/graph/differentiate.h"

#include "ir/formula/gradient.h"
#include "ir/graph/infer.h"
#include "ir/ops/known_ops.h"
#include "runtime/core/dtype.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::ValueId;

namespace {

size_t at(ValueId v) { return static_cast<size_t>(v); }

class Differentiation {
 public:
  Differentiation(Graph& graph, const std::vector<ValueId>& of)
      : graph_(graph), active_(graph.values.size(), false), sums_(graph.values.size(), kNone) {
    for (ValueId v : of) active_[at(v)] = true;
    for (const Node& n : graph.nodes) {
      bool reads = false;
      for (ValueId v : n.inputs) reads |= v != kNone && active_[at(v)];
      for (ValueId v : n.outputs)
        if (v != kNone && reads) active_[at(v)] = is_float(graph.value(v).type.dtype);
    }
  }

  Status run(ValueId loss) {
    TW_ASSIGN(sums_[at(loss)], filled(loss, 1));
    for (size_t k = graph_.nodes.size(); k-- > 0;)
      if (k < forward_) TW_RETURN_IF_ERROR(pass_on(k));
    if (obstacles_.empty()) return {};
    if (obstacles_.size() == 1) return obstacles_[0];
    Error all = unsupported(std::to_string(obstacles_.size()) + " nodes cannot be differentiated");
    for (const Error& e : obstacles_) all.notes.push_back(e.to_string());
    return all;
  }
  Result<ValueId> gradient(ValueId v) {
    return sums_[at(v)] != kNone ? Result<ValueId>(sums_[at(v)]) : filled(v, 0);
  }

 private:
  // A tensor like v.
  Result<ValueId> filled(ValueId v, double value) {
    const ir::TensorType type = graph_.value(v).type;
    ir::ConstantRef number =
        type.dtype == DType::kFloat64
            ? ir::make_constant_of<double>(DType::kFloat64, {}, {value})
            : ir::make_constant_of<float>(DType::kFloat32, {}, {static_cast<float>(value)});
    ValueId x = graph_.add_constant("", std::move(number));
    if (graph_.value(x).type.dtype != type.dtype) {
      TW_ASSIGN(auto cast, ir::add_node(graph_, ir::ops::cast(), {x},
                                        {{"to", std::string(name(type.dtype))}}, 1, "seed", {}));
      x = cast[0];
    }
    TW_ASSIGN(auto extents,
              ir::add_node(graph_, ir::ops::extents(), {}, {{"extents", ir::Extents{type.dims}}}, 1,
                           "seed.extents", {}));
    TW_ASSIGN(auto r, ir::add_node(graph_, ir::ops::expand(), {x, extents[0]}, {}, 1, "seed", {}));
    return r[0];
  }
  Status pass_on(size_t k) {
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
      wanted.push_back(v != kNone && active_[at(v)] && is_float(graph_.value(v).type.dtype));
      wants |= wanted.back();
    }
    if (!any || !wants) return {};
    auto found = ir::gradient_of(graph_, k, std::move(of_outputs), wanted);
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kUnsupported) return found.error();
      obstacles_.push_back(found.error());
      return {};
    }
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (wanted[i] && (*found)[i] != kNone) TW_RETURN_IF_ERROR(add(node, i, (*found)[i]));
    return {};
  }
  Status add(const Node& node, size_t operand, ValueId g) {
    ValueId& sum = sums_[at(node.inputs[operand])];
    if (sum == kNone) {
      sum = g;
      return {};
    }
    TW_ASSIGN(auto both,
              ir::add_node(graph_, ir::ops::add(), {sum, g}, {}, 1,
                           graph_.value(node.inputs[operand]).name + ".gradient", node.sources));
    sum = both[0];
    return {};
  }

  Graph& graph_;
  const size_t forward_ = graph_.nodes.size();
  std::vector<bool> active_;   // depends on what is differentiated by
  std::vector<ValueId> sums_;  // by value of the forward graph
  std::vector<Error> obstacles_;
};

}  // namespace

Result<std::vector<ValueId>> differentiate(Graph& graph, ValueId loss,
                                           const std::vector<ValueId>& of) {
  const ir::TensorType& type = graph.value(loss).type;
  const auto shape = constant_shape(type);
  if (!is_float(type.dtype) || !shape || element_count(*shape) != 1)
    return invalid("the loss is " + to_string(type) + ", expected one number",
                   "value '" + graph.value(loss).name + "'");
  Differentiation d(graph, of);
  TW_RETURN_IF_ERROR(d.run(loss));
  std::vector<ValueId> gradients;
  for (ValueId v : of) {
    TW_ASSIGN(const ValueId g, d.gradient(v));
    gradients.push_back(g);
  }
  return gradients;
}

}  // namespace tilewright::passes
