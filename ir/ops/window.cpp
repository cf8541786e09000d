// Convolution and pooling.
//
// The loops are the direct convolution, seven deep for 2-d, its padding written out before
// (padded_input); pooling reads through a guard instead. There is no im2col: the schedule tiles
// these loops in registers as it does a GEMM's.
#include "ir/ops/window.h"
#include "ir/formula/gradient.h"

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"

namespace tilewright::ir {

const std::vector<AttributeDef> kWindowAttributes{
    {"kernel_shape", AttributeKind::kInts, "extents of the window"},
    {"strides", AttributeKind::kInts, "default 1"},
    {"pads", AttributeKind::kExtents,
     "begin of each spatial dimension, then end of each; default 0"},
    {"dilations", AttributeKind::kInts, "default 1"},
    {"ceil_mode", AttributeKind::kInt, "output extents rounded up"}};

Result<WindowGeometry> window_lists(const NodeView& view, std::vector<int64_t> kernel) {
  const size_t n = kernel.size();
  WindowGeometry g;
  g.kernel = std::move(kernel);
  g.strides = view.attr_ints("strides", std::vector<int64_t>(n, 1));
  g.dilations = view.attr_ints("dilations", std::vector<int64_t>(n, 1));
  const std::vector<Expr> pads =
      view.attr_extents("pads").value_or(std::vector<Expr>(2 * n, Expr(0)));
  if (g.strides.size() != n || g.dilations.size() != n || pads.size() != 2 * n)
    return invalid("window attributes do not fit " + std::to_string(n) + " spatial dimensions");
  for (size_t d = 0; d < n; ++d) {
    if (g.kernel[d] < 1 || g.strides[d] < 1 || g.dilations[d] < 1)
      return invalid("kernel, strides and dilations must be at least 1");
    g.pads_begin.push_back(simplify(pads[d]));
    g.pads_end.push_back(simplify(pads[d + n]));
  }
  return g;
}

Result<std::vector<int64_t>> kernel_of_weights(const NodeView& view) {
  const auto& w = view.type(1).dims;
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < w.size(); ++d) {
    auto k = as_int(w[d]);
    if (!k) return needs_value("convolution with kernel extents unknown at compile time");
    kernel.push_back(*k);
  }
  return kernel;
}

Result<WindowGeometry> window_geometry(const NodeView& view, const std::vector<Expr>& input,
                                       std::vector<int64_t> kernel) {
  const size_t n = input.size() - 2;
  if (kernel.size() != n)
    return invalid("window attributes do not fit " + std::to_string(n) + " spatial dimensions");
  TW_ASSIGN(WindowGeometry g, window_lists(view, std::move(kernel)));
  for (size_t d = 0; d < n; ++d) {
    const Expr x = input[d + 2], begin = g.pads_begin[d], end = g.pads_end[d];
    if (as_int(begin).value_or(0) < 0 || as_int(end).value_or(0) < 0)
      return invalid("negative pads");
    const int64_t reach = (g.kernel[d] - 1) * g.dilations[d] + 1;
    const Expr room = x + begin + end - reach;
    Expr out = floordiv(room, g.strides[d]) + 1;
    if (view.attr_int("ceil_mode")) {
      out = ceildiv(room, g.strides[d]) + 1;
      // A window that would start in the padding at the end is dropped.
      out = select((out - 1) * g.strides[d] >= x + begin, out - 1, out);
    }
    g.out.push_back(simplify(out));
    if (!view.at_most(0, g.out[d],
                      "windows of " + std::to_string(reach) + " must fit the padded input"))
      return invalid("window of " + std::to_string(reach) + " is larger than the padded input");
  }
  return g;
}

Axes window_position(const WindowGeometry& g, const Buffer& x, const Axes& i, const Axes& r,
                     Expr& inside) {
  Axes at{i[0], i[1]};
  inside = bool_imm(true);
  for (size_t d = 0; d < g.kernel.size(); ++d) {
    Expr p = i[d + 2] * Expr(g.strides[d]) + r[d] * Expr(g.dilations[d]) - g.pads_begin[d];
    at.push_back(p);
    Expr last = simplify((g.out[d] - 1) * g.strides[d] + (g.kernel[d] - 1) * g.dilations[d] -
                         g.pads_begin[d]);
    if (!is_zero(g.pads_begin[d])) inside = logical_and(inside, p >= Expr(0));
    if (!can_prove(last < x->shape[d + 2])) inside = logical_and(inside, p < x->shape[d + 2]);
  }
  return at;
}
std::vector<Expr> window_extents(const WindowGeometry& g) {
  return {g.kernel.begin(), g.kernel.end()};
}

Buffer padded_copy(ComputeContext& c, const Buffer& x, const WindowGeometry& g,
                   const std::function<Expr(const Axes&)>& fill) {
  std::vector<Expr> shape{x->shape[0], x->shape[1]};
  bool any = false;
  for (size_t d = 0; d < g.out.size(); ++d) {
    any |= !is_zero(g.pads_begin[d]) || !is_zero(g.pads_end[d]);
    shape.push_back(simplify(x->shape[d + 2] + g.pads_begin[d] + g.pads_end[d]));
  }
  if (!any) return x;
  Buffer padded = c.b.temp("padded", x->dtype, shape);
  c.b.compute(
      padded,
      [&](const Axes& i) {
        Axes at{i[0], i[1]};
        Expr inside = bool_imm(true);
        for (size_t d = 0; d < g.out.size(); ++d) {
          Expr p = i[d + 2] - g.pads_begin[d];
          at.push_back(p);
          if (!is_zero(g.pads_begin[d])) inside = logical_and(inside, p >= Expr(0));
          if (!is_zero(g.pads_end[d])) inside = logical_and(inside, p < x->shape[d + 2]);
        }
        return select(inside, load(x, at), fill(i));
      },
      "pad");
  return padded;
}

Status infer_pool(InferContext& c) {
  const auto& x = c.type(0);
  if (x.rank() < 3) return c.error("x is " + to_string(x) + ", expected [n, c, spatial...]");
  auto g = window_geometry(c, x.dims, c.attr_ints("kernel_shape"));
  if (!g.ok()) return c.error(g.error().message);
  std::vector<Expr> dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), g->out.begin(), g->out.end());
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
namespace {

Result<WindowGeometry> conv_geometry(const NodeView& c) {
  TW_ASSIGN(std::vector<int64_t> kernel, kernel_of_weights(c));
  return window_geometry(c, c.type(0).dims, std::move(kernel));
}

Status check_conv_zero_points(const InferContext& c) {
  for (int k : {2, 3, 4}) {
    if (!c.has(k)) continue;
    const TensorType &of = c.type(k == 3 ? 1 : 0), &zero = c.type(k);
    auto dims = c.broadcast(of.dims, zero.dims);
    if (zero.dtype != of.dtype || !dims.ok() || dims->size() != of.dims.size() ||
        (k == 4 && zero.rank() != 0))
      return c.error((k == 4 ? "padding " : "zero point ") + to_string(zero) + " for " +
                     to_string(of));
  }
  return {};
}

// x: [n, c, spatial...], w: [o, c / group, kernel...]
Status infer_conv(InferContext& c) {
  const auto &x = c.type(0), &w = c.type(1);
  if (x.rank() < 3 || w.rank() != x.rank())
    return c.error("x is " + to_string(x) + ", w is " + to_string(w) +
                   ": expected [n, c, spatial...] and [o, c / group, kernel...]");
  if (x.dtype != w.dtype && !c.has_attribute("out_dtype"))
    return c.error("x is " + to_string(x) + ", w is " + to_string(w) + ": types differ");
  const int64_t group = c.attr_int("group", 1);
  if (group < 1 || !c.is_multiple(w.dims[0], group, "results must be whole groups") ||
      !c.agree(simplify(w.dims[1] * Expr(group)), x.dims[1]))
    return c.error("channels do not fit: x is " + to_string(x) + ", w is " + to_string(w) +
                   ", group is " + std::to_string(group));
  TW_RETURN_IF_ERROR(check_conv_zero_points(c));
  auto g = conv_geometry(c);
  if (!g.ok()) return c.at_node(g.error());
  std::vector<Expr> dims{x.dims[0], w.dims[0]};
  dims.insert(dims.end(), g->out.begin(), g->out.end());
  TW_ASSIGN(const DType out, out_dtype(c));
  c.set_output(0, out, std::move(dims));
  return {};
}

// x with its padding written out, in x's type: its zero point, where it has one.
Buffer padded_input(ComputeContext& c, const WindowGeometry& g) {
  return padded_copy(c, c.in(0), g, [&](const Axes& i) {
    return c.has(4) ? load(c.in(4), {}) : c.has(2) ? c.read(2, i) : constant(0, c.in(0)->dtype);
  });
}

void compute_conv(ComputeContext& c) {
  const WindowGeometry g = conv_geometry(c).value();
  const int64_t group = c.attr_int("group", 1);
  const Buffer x = padded_input(c, g), &w = c.in(1);
  const bool depthwise = is_one(w->shape[1]);
  const Expr outs_per_group = floordiv(w->shape[0], group);
  const bool one_to_one = depthwise && is_one(simplify(outs_per_group));
  std::vector<Expr> reduce;
  if (!depthwise) reduce.push_back(w->shape[1]);
  for (int64_t k : g.kernel) reduce.push_back(k);
  const DType dtype = c.out()->dtype;
  const DType acc = accumulator(dtype);
  const bool half = acc != dtype;
  Buffer sum = half ? c.b.temp("acc", acc, c.out()->shape) : c.out();
  auto value = [&](const Axes& i, const Axes& r) {
    const size_t first = depthwise ? 0 : 1;
    Expr ic = depthwise ? Expr(0) : r[0];
    Expr channel = group == 1   ? ic
                   : one_to_one ? i[1]
                                : simplify(floordiv(i[1], outs_per_group) * w->shape[1] + ic);
    Axes at_x{i[0], channel}, at_w{i[1], ic};
    for (size_t d = 0; d < g.kernel.size(); ++d) {
      at_x.push_back(i[d + 2] * Expr(g.strides[d]) + r[first + d] * Expr(g.dilations[d]));
      at_w.push_back(r[first + d]);
    }
    Expr a = cast(acc, load(x, at_x)), b = cast(acc, load(w, at_w));
    if (c.has(2)) a = a - cast(acc, c.read(2, at_x));
    if (c.has(3)) b = b - cast(acc, c.read(3, at_w));
    return a * b;
  };
  c.b.reduce(sum, reduce, Combiner::kSum, value, depthwise ? "depthwise" : "conv");
  if (half) c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(sum, i)); }, "round");
}

void compute_max_pool(ComputeContext& c) {
  const WindowGeometry g = window_geometry(c, c.type(0).dims, c.attr_ints("kernel_shape")).value();
  c.b.reduce(
      c.out(), window_extents(g), Combiner::kMax,
      [&](const Axes& i, const Axes& r) {
        Expr inside;
        Axes at = window_position(g, c.in(0), i, r, inside);
        return select(inside, load(c.in(0), at), lowest(c.in(0)->dtype));
      },
      "max_pool");
}
void compute_average_pool(ComputeContext& c) {
  const WindowGeometry g = window_geometry(c, c.type(0).dims, c.attr_ints("kernel_shape")).value();
  const Buffer& x = c.in(0);
  const DType acc = accumulator(x->dtype);
  Buffer sum = c.b.temp("sum", acc, c.out()->shape);
  c.b.reduce(
      sum, window_extents(g), Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Expr inside;
        Axes at = window_position(g, x, i, r, inside);
        return cast(acc, select(inside, load(x, at), constant(0, x->dtype)));
      },
      "average_pool");
  const bool count_pads = c.attr_int("count_include_pad") != 0;
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr n = 1;
        for (size_t d = 0; d < g.kernel.size(); ++d) {
          // Elements of the window that count: inside x, or inside the padded x.
          Expr start = i[d + 2] * Expr(g.strides[d]) - g.pads_begin[d];
          Expr low = count_pads ? Expr(0) - g.pads_begin[d] : Expr(0);
          Expr high = count_pads ? x->shape[d + 2] + g.pads_end[d] : x->shape[d + 2];
          Expr dilation = g.dilations[d];
          Expr first = max(ceildiv(low - start, dilation), 0);
          Expr last = min(floordiv(high - 1 - start, dilation), g.kernel[d] - 1);
          n = n * (last - first + 1);
        }
        return cast(x->dtype, load(sum, i) / cast(acc, n));
      },
      "divide");
}

// Windows of one element, of which strides leave out most.
bool reads_apart(const NodeView& node) {
  const WindowGeometry g = conv_geometry(node).value();
  bool apart = false;
  for (size_t d = 0; d < g.kernel.size(); ++d) {
    if (g.kernel[d] != 1 || !is_zero(g.pads_begin[d]) || !is_zero(g.pads_end[d])) return false;
    apart |= g.strides[d] > 1;
  }
  return apart;
}
// The elements that such windows read.
V every(V x, const std::vector<int64_t>& strides) {
  for (size_t d = 0; d < strides.size(); ++d)
    if (strides[d] > 1) x.id = x.n.slice(x.id, static_cast<int>(d) + 2, 0, INT64_MAX, strides[d]);
  return x;
}

// By x: the transposed convolution, with as many zeros behind as x has elements that no window takes.
void gradient_of_conv(GradientContext& c) {
  const NodeView node = c.view();
  if (node.has(2) || node.has(3) || node.has(4)) c.fail("zero points have no gradient");
  if (c.wants(0)) {
    const WindowGeometry g = conv_geometry(node).value();
    std::vector<Expr> begin, end;
    for (size_t d = 0; d < g.kernel.size(); ++d) {
      const Expr reach = (g.kernel[d] - 1) * g.dilations[d] + 1;
      const Expr taken = (g.out[d] - 1) * Expr(g.strides[d]) + reach;
      begin.push_back(g.pads_begin[d]);
      end.push_back(simplify(taken - g.pads_begin[d] - node.dim(0, static_cast<int>(d) + 2)));
    }
    begin.insert(begin.end(), end.begin(), end.end());
    Attributes a{{"strides", g.strides},
                 {"dilations", g.dilations},
                 {"pads", Extents{begin}},
                 {"group", node.attr_int("group", 1)}};
    c.add(0, c.dy().make("conv_transpose", {c.dy().id, c.in(1).id}, std::move(a)));
  }
  Attributes a = node.node().attributes;
  a.erase("out_dtype");
  a["kernel_shape"] = kernel_of_weights(node).value();
  if (!c.wants(1)) return;
  V x = c.in(0);
  if (reads_apart(node)) {
    x = every(x, conv_geometry(node).value().strides);
    a.erase("strides");
  }
  c.add(1, c.dy().make("conv_weights_gradient", {c.dy().id, x.id}, std::move(a)));
}

}  // namespace

void gradient_of_max_pool(GradientContext& c) {
  if (!c.has_dy(0)) return;
  Attributes a = c.view().node().attributes;
  // How indices are counted is of no matter: taps are.
  a.erase("storage_order");
  const V taps = c.in(0).make("max_pool_taps", {c.in(0).id, c.out().id}, a);
  a["extents"] = Extents{c.type(c.in(0).id).dims};
  c.add(0, c.dy().make("max_pool_gradient", {c.dy().id, taps.id}, std::move(a)));
}

const std::vector<OpDef>& window_ops() {
  static const std::vector<OpDef> ops{
      {.name = "conv",
       .summary = "convolution of x: [n, c, spatial...] with w: [o, c / group, kernel...]; zero "
                  "points are subtracted from the operands first; `padding` stands around x "
                  "(default: its zero point, or 0)",
       .operands = {{"x"},
                    {"w"},
                    {"x_zero_point", OperandDef::kOptional},
                    {"w_zero_point", OperandDef::kOptional},
                    {"padding", OperandDef::kOptional}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back({"group", AttributeKind::kInt, "default 1"});
             a.push_back({"out_dtype", AttributeKind::kString,
                          "type of the result and the sum; default: that of x"});
             return a;
           }(),
       .fusion = FusionKind::kContraction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_conv,
       .compute = compute_conv,
       .gradient = gradient_of_conv,
       .example = {.inputs = {{DType::kFloat32, {2, 5, 9, 11}}, {DType::kFloat32, {7, 5, 3, 3}}},
                   .attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                  {"strides", std::vector<int64_t>{2, 1}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Conv.html"},
      {.name = "max_pool",
       .summary = "largest element of each window, NaN if there is one",
       .operands = {{"x"}},
       .attributes = kWindowAttributes,
       .fusion = FusionKind::kReduction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_pool,
       .compute = compute_max_pool,
       .gradient = gradient_of_max_pool,
       .example = {.inputs = {{DType::kFloat32, {1, 3, 9, 9}}},
                   .attributes = {{"kernel_shape", std::vector<int64_t>{3, 2}},
                                  {"pads", std::vector<int64_t>{1, 0, 1, 0}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxPool.html"},
      {.name = "average_pool",
       .summary = "mean of each window",
       .operands = {{"x"}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back({"count_include_pad", AttributeKind::kInt, "padding counts as zeros"});
             return a;
           }(),
       .fusion = FusionKind::kReduction,
       .channels = Channels::kInnermost,
       .reads_stored = true,
       .infer_type = infer_pool,
       .compute = compute_average_pool,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {1, 3, 9, 9}}},
                   .attributes = {{"kernel_shape", std::vector<int64_t>{3, 2}},
                                  {"pads", std::vector<int64_t>{1, 0, 1, 0}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__AveragePool.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
