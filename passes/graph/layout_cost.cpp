// Channels innermost is the layout of large networks: their vectors run over output channels, whatever
// the window, stride and extent of an image. Where the channels of a group are few, as in the last
// layers of decoders and in networks for sound, most of such a vector is empty, and those of pixels
// are fuller.
#include "passes/graph/layout_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/known_ops.h"
#include "ir/ops/window.h"
#include "passes/analysis/extents.h"

namespace tilewright::passes {

using namespace ir;

namespace {

double extent(const Expr& e) { return static_cast<double>(as_int(e).value_or(kUnknownExtent)); }

// Vectors for so many results side by side, as instructions per result.
double per_result(double results, int64_t lanes) {
  const auto n = static_cast<int64_t>(results);
  return n < 1 ? 1 : static_cast<double>((n + lanes - 1) / lanes) / results;
}

// The same of channels in groups, each with so many results and operands: a vector may be over several
// groups where what they read is one vector, too (tile_axes.cpp).
double per_channel(double results, double operands, int64_t lanes) {
  constexpr double kShuffled = 2.5;  // measured: groups of 4, with stride 1 and 2
  const double of_one = per_result(results, lanes), vector = static_cast<double>(lanes);
  const bool one_vector = std::fmod(vector, results) == 0 && operands <= results;
  return one_vector ? std::min(of_one, kShuffled / vector) : of_one;
}

// Vectors of pixels do not start where cache lines do, and with strides they are put together. Where
// padding is no copy, as in pooling, they are guarded at borders, and with strides pixel by pixel.
double of_a_load(const WindowGeometry& g, bool pool) {
  constexpr double kUnaligned = 1.3, kEverySecond = 2.6, kEveryFourth = 8, kApart = 24;
  const int64_t stride = g.strides.back();
  bool padded = false, padded_rows = false;
  for (size_t d = 0; d < g.strides.size(); ++d) {
    padded_rows = !is_zero(g.pads_begin[d]) || !is_zero(g.pads_end[d]);
    padded |= padded_rows;
  }
  if (stride > 4 || (pool && padded && stride > 1)) return kApart;
  if (stride > 2) return kEveryFourth;
  return stride == 2 || (pool && padded_rows) ? kEverySecond : kUnaligned;
}

// Pixels that a window of one meets side by side; else those of the innermost dimension.
double pixels_in_a_row(const TensorType& y, const WindowGeometry& g) {
  double row = 1;
  for (size_t d = g.kernel.size(); d-- > 0;) {
    row *= extent(y.dims[d + 2]);
    const bool runs_on =
        g.kernel[d] == 1 && g.strides[d] == 1 && is_zero(g.pads_begin[d]) && is_zero(g.pads_end[d]);
    if (!runs_on && row > 1) break;
  }
  return row;
}

// Of the gradient of weights: its sums lie side by side along the channels of results; along rows of pixels it
// consists of dot products, whose vectors are added up for each of them.
LayoutCost of_weights_gradient(const NodeView& view, const TensorType& dw, int64_t lanes) {
  constexpr double kDots = 3.5;  // measured: batches of ResNet-50's layers
  double work = extent(view.type(0).dims[0]);
  for (const Expr& e : dw.dims) work *= extent(e);
  for (size_t d = 2; d < view.type(0).dims.size(); ++d) work *= extent(view.type(0).dims[d]);
  const double outs = extent(dw.dims[0]), ins = extent(dw.dims[1]),
               of_group = ins > 1 ? outs / static_cast<double>(view.attr_int("group", 1)) : outs;
  return {work * per_channel(of_group, ins, lanes), work * kDots / static_cast<double>(lanes)};
}

}  // namespace

// Close calls stay with the layout that all parts of a network can share.
bool LayoutCost::prefers_rows() const { return row_major < 0.9 * channels_innermost; }

double copy_cost(const TensorType& type) {
  if (type.rank() < 3 || as_int(type.dims[1]).value_or(kFewChannels + 1) <= kFewChannels) return 0;
  double elements = 1;
  for (const Expr& e : type.dims) elements *= extent(e);
  return elements;
}

LayoutCost layout_cost(const Graph& graph, const Node& node, const MachineDescription& machine) {
  constexpr LayoutCost kOnlyInnermost{0, std::numeric_limits<double>::infinity()};
  const NodeView view(graph, node);
  const TensorType &x = view.type(0), &y = graph.value(node.outputs[0]).type;
  if (node.op == ops::conv_weights_gradient())
    return of_weights_gradient(view, y, machine.lanes(byte_size(x.dtype)));
  const bool conv = node.op == ops::conv(), pool = !conv && node.attributes.count("kernel_shape");
  if ((!conv && !pool) || x.dtype != DType::kFloat32) return kOnlyInnermost;
  Result<std::vector<int64_t>> kernel = view.attr_ints("kernel_shape");
  if (conv) kernel = kernel_of_weights(view);
  if (!kernel.ok()) return kOnlyInnermost;
  const auto g = window_geometry(view, x.dims, *kernel);
  if (!g.ok()) return kOnlyInnermost;

  double work = 1;  // multiply-adds
  for (const Expr& e : y.dims) work *= extent(e);
  for (int64_t k : g->kernel) work *= static_cast<double>(k);
  double channels = extent(y.dims[1]), operands = 1;  // of a group
  if (conv && !is_one(view.type(1).dims[1])) {
    operands = extent(view.type(1).dims[1]);
    work *= operands;
    channels /= static_cast<double>(view.attr_int("group", 1));
  }
  const int64_t lanes = machine.lanes(4);
  return {work * per_channel(channels, operands, lanes),
          work * per_result(pixels_in_a_row(y, *g), lanes) * of_a_load(*g, pool)};
}

}  // namespace tilewright::passes
