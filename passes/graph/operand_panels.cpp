#include "passes/graph/operand_panels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "ir/ops/window.h"
#include "passes/cost/panel_width.h"
#include "passes/cost/tile_cost.h"
#include "passes/cost/winograd_cost.h"

namespace tilewright::passes {

using namespace ir;

namespace {

int64_t known(const Expr& e) { return as_int(e).value_or(0); }
int64_t times(int64_t n, const Expr& e) { return std::min<int64_t>(n * known(e), 1 << 30); }

// matmul by one matrix.
std::optional<ProductSizes> sizes_of_matmul(const Graph& graph, const Node& n) {
  const TensorType &a = graph.value(n.inputs[0]).type, &b = graph.value(n.inputs[1]).type;
  if (b.rank() != 2 || a.rank() < 2) return std::nullopt;
  const NodeView view(graph, n);
  const int columns = view.attr_int("trans_b") ? 0 : 1,
            terms = a.rank() - (view.attr_int("trans_a") ? 2 : 1);
  ProductSizes sizes{.rows = 1,
                     .columns = known(b.dims[static_cast<size_t>(columns)]),
                     .terms = known(b.dims[static_cast<size_t>(1 - columns)]),
                     .bytes = byte_size(b.dtype),
                     .is_transposed = columns == 0};
  for (int d = 0; d < a.rank(); ++d)
    if (d != terms) sizes.rows = times(sizes.rows, a.dims[static_cast<size_t>(d)]);
  return sizes;
}

// As where images lie amid their padding: lines do not run on.
bool is_part(const Graph& graph, ValueId v) {
  const int32_t maker = graph.value(v).producer;
  return maker >= 0 && graph.nodes[static_cast<size_t>(maker)].op == ops::slice();
}

// conv: the pixels of results are rows, and those of one line of an image are side by side.
std::optional<ProductSizes> sizes_of_conv(const Graph& graph, const Node& n,
                                          const MachineDescription& machine) {
  const NodeView view(graph, n);
  const TensorType &x = view.type(0), &w = view.type(1);
  const auto kernel = kernel_of_weights(view);
  if (!kernel.ok() || w.rank() < 3 || view.attr_int("group", 1) != 1) return std::nullopt;
  const auto g = window_geometry(view, x.dims, *kernel);
  if (!g.ok()) return std::nullopt;
  ProductSizes sizes{.rows = 1,
                     .columns = known(w.dims[0]),
                     .terms = known(w.dims[1]),
                     .bytes = byte_size(w.dtype),
                     .repeats = known(x.dims[0]),
                     .is_transposed = true};
  bool runs_on = !is_part(graph, n.inputs[0]) &&
                 tiles_cover(machine, std::max<int64_t>(known(g->out.back()), 1));
  for (size_t d = g->kernel.size(); d-- > 0;) {
    sizes.terms = std::min<int64_t>(sizes.terms * g->kernel[d], 1 << 30);
    int64_t& lines = runs_on || d + 1 == g->kernel.size() ? sizes.rows : sizes.repeats;
    lines = times(lines, g->out[d]);
    // From one line to the next.
    runs_on &= g->kernel[d] == 1 && g->strides[d] == 1 && is_zero(g->pads_begin[d]) &&
               is_zero(g->pads_end[d]);
  }
  if (!runs_on) return sizes;
  sizes.within = known(g->out.back());
  sizes.rows = times(std::exchange(sizes.repeats, 1), sizes.rows);
  return sizes;
}

Layout of_product(const Graph& graph, const Node& n, const MachineDescription& machine) {
  const TensorType& b = graph.value(n.inputs[1]).type;
  if (b.dtype != graph.value(n.outputs[0]).type.dtype ||
      (b.dtype != DType::kFloat32 && b.dtype != DType::kFloat64))
    return {};
  const auto sizes =
      n.op == ops::conv() ? sizes_of_conv(graph, n, machine) : sizes_of_matmul(graph, n);
  const int64_t width = sizes ? panel_width(machine, *sizes) : 0;
  if (width == 0) return {};
  const int columns = sizes->is_transposed ? 0 : 1;
  Layout layout{{columns, width, 0}};
  // The window of a convolution goes around its channels.
  for (int d = 2; d < b.rank(); ++d) layout.push_back({d, 1, 0});
  layout.insert(layout.end(), {{1 - columns, 1, 0}, {columns, 1, width}});
  return layout;
}

// u: [m + 2, m + 2, c, o], as in winograd_rule.
Layout of_winograd(const Graph& graph, const Node& n, const MachineDescription& machine) {
  const TensorType &u = graph.value(n.inputs[1]).type, &y = graph.value(n.outputs[0]).type;
  const auto points = as_int(u.dims[0]), c = as_int(u.dims[2]), o = as_int(u.dims[3]),
             height = as_int(y.dims[2]), width = as_int(y.dims[3]);
  if (!points || !c || !o || !height || !width || *c < 1 || *o < 1 || *height < 1 || *width < 1)
    return {};
  const WinogradPlan plan = plan_winograd(
      machine, {.in_channels = *c, .out_channels = *o, .height = *height, .width = *width},
      *points - 2);
  const int64_t panel = plan.tile.best.vectors * plan.lanes;
  return {{3, panel, 0}, {0, 1, 0}, {1, 1, 0}, {2, 1, 0}, {3, 1, panel}};
}

}  // namespace

Layout operand_panels(const Graph& graph, const Node& node, const MachineDescription& machine) {
  if (node.op == ops::winograd_conv()) return of_winograd(graph, node, machine);
  return node.op == ops::matmul() || node.op == ops::conv() ? of_product(graph, node, machine)
                                                            : Layout{};
}

}  // namespace tilewright::passes
