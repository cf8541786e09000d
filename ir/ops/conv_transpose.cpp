// Transposed convolution, the adjoint of `conv` in its first operand: each element of x adds its
// multiple of the kernel to a window of the result.
//
// The loops say it in gather form, as everything does that is scheduled: each result sums the
// elements of x whose windows it lies in. With a stride s only each s-th element of the kernel meets
// an element of x, so that of the products that these loops visit one in s counts. That is the
// meaning; what is computed are the phases of open_conv_transpose, a pass over graphs. (Dumoulin and
// Visin, "A guide to convolution arithmetic for deep learning", 2016.)
#include "ir/ops/conv_transpose.h"
#include "ir/formula/gradient.h"

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

// No tensor has an extent as large: windows are bounded before their arithmetic can overflow.
constexpr int64_t kMostExtent = int64_t{1} << 40;

bool is_beyond(int64_t n) { return n > kMostExtent || n < -kMostExtent; }

}  // namespace

Result<WindowGeometry> transposed_geometry(const NodeView& view) {
  TW_ASSIGN(std::vector<int64_t> kernel, kernel_of_weights(view));
  TW_ASSIGN(WindowGeometry g, window_lists(view, std::move(kernel)));
  for (size_t d = 0; d < g.kernel.size(); ++d) {
    for (const Expr& pad : {g.pads_begin[d], g.pads_end[d]})
      if (is_beyond(as_int(pad).value_or(0))) return limit_error("pads beyond 2^40");
    if (is_beyond(g.strides[d]) || g.dilations[d] > kMostExtent / g.kernel[d])
      return limit_error("strides, or dilated windows, beyond 2^40");
    const int64_t reach = (g.kernel[d] - 1) * g.dilations[d] + 1;
    g.out.push_back(simplify((view.dim(0, static_cast<int>(d) + 2) - 1) * Expr(g.strides[d]) +
                             Expr(reach) - g.pads_begin[d] - g.pads_end[d]));
    if (!view.at_most(0, g.out[d], "pads must cut off at most what there is"))
      return invalid("pads cut off more than there is: extent " + to_text(g.out[d]) +
                     " of spatial dimension " + std::to_string(d));
  }
  return g;
}

namespace {

// x: [n, c, spatial...], w: [c, o / group, kernel...]
Status check_channels(const InferContext& c) {
  const TensorType &x = c.type(0), &w = c.type(1);
  const int64_t group = c.attr_int("group", 1);
  const bool fits = group >= 1 && c.agree(w.dims[0], x.dims[1]);
  const auto channels = as_int(as_int(w.dims[0]) ? w.dims[0] : x.dims[1]);
  if (fits && group > 1 && !channels)
    return c.needs_value("groups of channels whose number is not known at compile time");
  if (!fits || channels.value_or(0) % group)
    return c.error("channels do not fit: x is " + to_string(x) + ", w is " + to_string(w) +
                   ", group is " + std::to_string(group));
  return {};
}

Status infer_conv_transpose(InferContext& c) {
  const TensorType &x = c.type(0), &w = c.type(1);
  const std::string found = "x is " + to_string(x) + ", w is " + to_string(w);
  if (x.rank() < 3 || w.rank() != x.rank())
    return c.error(found +
                   ": expected [n, c, spatial...] and [c, o / group, kernel...] of one rank");
  if (x.dtype != w.dtype || x.dtype == DType::kBool)
    return c.error(found + ": expected numbers of one type");
  TW_ASSIGN(const DType out, out_dtype(c));
  TW_RETURN_IF_ERROR(check_channels(c));
  auto g = transposed_geometry(c);
  if (!g.ok()) return c.at_node(g.error());
  std::vector<Expr> dims{x.dims[0], simplify(w.dims[1] * Expr(c.attr_int("group", 1)))};
  dims.insert(dims.end(), g->out.begin(), g->out.end());
  c.set_output(0, out, std::move(dims));
  return {};
}

// Where in x the element lies that adds its multiple of kernel element r to result i, and whether
// there is one: i + pad - r * dilation is a multiple of the stride, and not outside.
Axes source_position(const WindowGeometry& g, const Buffer& x, const Axes& i, const Axes& r,
                     Expr& exists) {
  Axes at;
  exists = bool_imm(true);
  for (size_t d = 0; d < g.kernel.size(); ++d) {
    const Expr stride = g.strides[d],
               from = i[d + 2] + g.pads_begin[d] - r[d + 1] * Expr(g.dilations[d]);
    const Expr p = floordiv(from, stride);
    exists = logical_and(exists, logical_and(from >= Expr(0), p < x->shape[d + 2]));
    if (g.strides[d] > 1) exists = logical_and(exists, eq(floormod(from, stride), Expr(0)));
    at.push_back(p);
  }
  return at;
}

// y[n, o, i] = sum over c of o's group and over r of x[n, c, (i + pad - r dilation) / stride] w[c,
// o, r]
void compute_conv_transpose(ComputeContext& c) {
  const WindowGeometry g = transposed_geometry(c).value();
  const Buffer &x = c.in(0), &w = c.in(1);
  const int64_t group = c.attr_int("group", 1);
  const Expr outs = w->shape[1], ins = simplify(floordiv(w->shape[0], group));
  const DType dtype = c.out()->dtype, acc = accumulator(dtype);
  const bool half = acc != dtype;
  Buffer sum = half ? c.b.temp("acc", acc, c.out()->shape) : c.out();
  std::vector<Expr> reduce = window_extents(g);
  reduce.insert(reduce.begin(), ins);
  c.b.reduce(
      sum, reduce, Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        const bool one = group == 1;
        const Expr channel = one ? r[0] : simplify(floordiv(i[1], outs) * ins + r[0]);
        Expr exists;
        Axes at_x{i[0], channel}, at_w{channel, one ? i[1] : simplify(floormod(i[1], outs))};
        for (const Expr& p : source_position(g, x, i, r, exists)) at_x.push_back(p);
        at_w.insert(at_w.end(), r.begin() + 1, r.end());
        return select(exists, cast(acc, load(x, at_x)) * cast(acc, load(w, at_w)),
                      constant(0, acc));
      },
      "conv_transpose");
  if (half) c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(sum, i)); }, "round");
}

// By x: the convolution that this one is the transpose of; both take the same weights. By w: what that convolution's
// gradient is, with its operand, dy, for the derivative by its results, x.
void gradient_of_conv_transpose(GradientContext& c) {
  const NodeView node = c.view();
  const WindowGeometry g = transposed_geometry(node).value();
  std::vector<Expr> pads = g.pads_begin;
  pads.insert(pads.end(), g.pads_end.begin(), g.pads_end.end());
  V dy = c.dy();
  bool negative = false;
  for (const Expr& p : pads) negative |= as_int(p).value_or(0) < 0;
  if (negative) {  // results that no element of x adds to
    std::vector<Expr> cut(static_cast<size_t>(2 * dy.rank()), Expr(0));
    for (size_t d = 0; d < pads.size(); ++d) {
      if (as_int(pads[d]).value_or(0) >= 0) continue;
      const size_t n = g.kernel.size();
      cut[d < n ? d + 2 : d + 4] = pads[d];
      pads[d] = 0;
    }
    dy = dy.make("pad", {dy.id, c.dims(cut)});
  }
  Attributes a{{"strides", g.strides},
               {"dilations", g.dilations},
               {"pads", Extents{pads}},
               {"group", node.attr_int("group", 1)}};
  if (c.wants(0)) c.add(0, dy.make("conv", {dy.id, c.in(1).id}, a));
  if (!c.wants(1)) return;
  a["kernel_shape"] = g.kernel;
  c.add(1, dy.make("conv_weights_gradient", {c.in(0).id, dy.id}, std::move(a)));
}

}  // namespace

const std::vector<OpDef>& conv_transpose_ops() {
  static const std::vector<OpDef> ops{
      {.name = "conv_transpose",
       .summary = "transposed convolution: the sum of w: [c, o / group, kernel...] times each "
                  "element of x: [n, c, spatial...], element i of a dimension at i * stride; "
                  "kernel elements stand a dilation apart",
       .operands = {{"x"}, {"w"}},
       .attributes =
           {{"strides", AttributeKind::kInts, "default 1"},
            {"pads", AttributeKind::kExtents,
             "what is cut off: at the begin of each spatial dimension, then at the end of each; "
             "below 0: zeros are added; default 0"},
            {"dilations", AttributeKind::kInts, "default 1"},
            {"group", AttributeKind::kInt, "default 1"},
            {"out_dtype", AttributeKind::kString,
             "type of the result and the sum; default: that of x"}},
       .fusion = FusionKind::kContraction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_conv_transpose,
       .compute = compute_conv_transpose,
       .gradient = gradient_of_conv_transpose,
       .example = {.inputs = {{DType::kFloat32, {2, 5, 4, 6}}, {DType::kFloat32, {5, 7, 3, 4}}},
                   .attributes = {{"pads", std::vector<int64_t>{1, 1, 0, 1}},
                                  {"strides", std::vector<int64_t>{2, 3}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__ConvTranspose.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
