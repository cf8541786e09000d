// Convolutions with windows of 3x3, and the gradients of their weights, take Winograd's form where that
// is surely faster.
#include "ir/ops/window.h"
#include "passes/cost/winograd_cost.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Of a layer whose weights are trained. Rounding moves the curves of small networks, which are held
// against those of plain sums, as much as it speeds their steps up.
bool is_large_layer(const WindowedProduct& p) {
  constexpr double kFewestProducts = 5e8, kWindow = 9;
  return kWindow * static_cast<double>(p.images * p.height * p.width) *
             static_cast<double>(p.in_channels * p.out_channels) >=
         kFewestProducts;
}

class UseWinograd : public GraphRewriter {
 public:
  UseWinograd(Graph graph, const MachineDescription& machine, Decisions* decisions)
      : GraphRewriter(std::move(graph), decisions), machine_(machine) {}
  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (!rewrite(n)) push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool rewrite(const Node& n) {
    return n.op == ops::conv_weights_gradient() ? rewrite_gradient(n) : rewrite_conv(n);
  }
  bool rewrite_gradient(const Node& n) {
    const TensorType &dy = type(n.inputs[0]), &x = type(n.inputs[1]);
    const auto pads = pads_of_3x3(n, x, type(n.outputs[0]), dy);
    if (!pads || !as_int(dy.dims[2]) || !as_int(dy.dims[3])) return false;
    const WindowedProduct p{.images = std::max<int64_t>(as_int(dy.dims[0]).value_or(1), 1),
                            .in_channels = *as_int(x.dims[1]),
                            .out_channels = *as_int(dy.dims[1]),
                            .height = *as_int(dy.dims[2]),
                            .width = *as_int(dy.dims[3])};
    const GradientForms forms = gradient_forms(machine_, p);
    const int64_t m =
        decisions().decide(decision_name(graph_, n, "winograd"), {WindowedForms::kDirect, 2, 4},
                           is_large_layer(p) ? forms.usual : WindowedForms::kDirect, Bits::kChanged,
                           {forms.direct.total(), forms.cost(2).total(), forms.cost(4).total()});
    if (m == WindowedForms::kDirect) return false;
    replace(n.outputs[0], op(ops::winograd_weights_gradient(), {n.inputs[0], n.inputs[1]},
                             {{"tile", m}, {"pads", *pads}}));
    return true;
  }
  bool rewrite_conv(const Node& n) {
    if (n.op != ops::conv() || n.inputs.size() != 2) return false;
    const auto pads = pads_of_3x3(n, type(n.inputs[0]), type(n.inputs[1]), type(n.outputs[0]));
    if (!pads) return false;
    const TensorType& y = type(n.outputs[0]);
    const WindowedProduct p = sizes(n);
    const bool assumed = !as_int(y.dims[2]) || !as_int(y.dims[3]);
    const WindowedForms forms = assumed ? windowed_forms(machine_, assume(p, y.dims[2], y.dims[3]))
                                        : windowed_forms(machine_, p);
    const int64_t m = decisions().decide(
        decision_name(graph_, n, "winograd"), {WindowedForms::kDirect, 2, 4},
        !p.transforms_weights || is_large_layer(p) ? forms.usual : WindowedForms::kDirect,
        Bits::kChanged,
        {forms.direct.total(), forms.plan(2).cost.total(), forms.plan(4).cost.total()});
    if (m == WindowedForms::kDirect) return false;
    const ValueId u = op(ops::winograd_weights(), {n.inputs[1]}, {{"tile", m}});
    replace(n.outputs[0], op(ops::winograd_conv(), {n.inputs[0], u}, {{"pads", *pads}}));
    return true;
  }
  // The pads of a convolution that can take the form, or of that whose gradient the node is; nothing
  // when it cannot.
  std::optional<std::vector<int64_t>> pads_of_3x3(const Node& n, const TensorType& x,
                                                  const TensorType& w, const TensorType& y) const {
    if (x.dtype != DType::kFloat32 || y.dtype != x.dtype || x.rank() != 4) return std::nullopt;
    const NodeView view(graph_, n);
    if (as_int(w.dims[2]) != 3 || as_int(w.dims[3]) != 3 || view.attr_int("group", 1) != 1)
      return std::nullopt;
    auto g = window_geometry(view, x.dims, {3, 3});
    if (!g.ok() || g->strides != std::vector<int64_t>{1, 1} ||
        g->dilations != std::vector<int64_t>{1, 1})
      return std::nullopt;
    for (const Expr& e : y.dims)
      if (as_int(e).value_or(1) < 1) return std::nullopt;
    if (!as_int(w.dims[0]) || !as_int(w.dims[1])) return std::nullopt;
    std::vector<int64_t> pads;
    for (const auto* side : {&g->pads_begin, &g->pads_end})
      for (const Expr& e : *side) {
        if (!as_int(e)) return std::nullopt;
        pads.push_back(*as_int(e));
      }
    return pads;
  }
  // One image where variants of a model for other numbers of images share their weights.
  WindowedProduct sizes(const Node& n) const {
    const TensorType &w = type(n.inputs[1]), &y = type(n.outputs[0]);
    const bool shared = is_fixed(n.inputs[1]);
    return {.images = shared ? 1 : std::max<int64_t>(as_int(y.dims[0]).value_or(1), 1),
            .in_channels = *as_int(w.dims[1]),
            .out_channels = *as_int(w.dims[0]),
            .height = as_int(y.dims[2]).value_or(1),
            .width = as_int(y.dims[3]).value_or(1),
            .transforms_weights = !shared};
  }
  const MachineDescription& machine_;
};

}  // namespace

Graph use_winograd(Graph graph, const MachineDescription& machine, Decisions* decisions) {
  return UseWinograd(std::move(graph), machine, decisions).run();
}

}  // namespace tilewright::passes
