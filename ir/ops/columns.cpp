// Columns of sliding windows: of a deformable convolution, and added up to an image.
//
// deform_columns is the im2col of deformable convolution (Dai et al., 2017; the product with the
// weights is a matmul behind it), and col2im the adjoint of im2col for ordinary windows.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/taps.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

// --- deform_columns ----------------------------------------------------------------------------

struct MovedWindow {
  std::vector<int64_t> strides, dilations, pads;
};
MovedWindow moved_window(const NodeView& c) {
  return {c.attr_ints("strides", {1, 1}), c.attr_ints("dilations", {1, 1}),
          c.attr_ints("pads", {0, 0, 0, 0})};
}
Status infer_deform_columns(InferContext& c) {
  const auto &x = c.type(0), &offset = c.type(1);
  const auto kernel = c.attr_ints("kernel_shape");
  if (x.rank() != 4 || offset.rank() != 4 || kernel.size() != 2)
    return c.error("x is " + to_string(x) + ", offset is " + to_string(offset));
  const MovedWindow window = moved_window(c);
  if (window.strides.size() != 2 || window.dilations.size() != 2 || window.pads.size() != 4)
    return c.error("strides, dilations and pads have " + std::to_string(window.strides.size()) +
                   ", " + std::to_string(window.dilations.size()) + " and " +
                   std::to_string(window.pads.size()) + " elements, expected 2, 2 and 4");
  const int64_t group = c.attr_int("offset_group", 1);
  if (group < 1 || !c.is_multiple(x.dims[1], group, "channels must be whole groups of offsets"))
    return c.error("x is " + to_string(x) + ", offset_group is " + std::to_string(group));
  const Expr expected = simplify(Expr(group) * Expr(kernel[0]) * Expr(kernel[1]) * Expr(2));
  if (!c.agree(offset.dims[1], expected) || !c.agree(offset.dims[0], x.dims[0]))
    return c.error("x is " + to_string(x) + ", offset is " + to_string(offset) + ": expected " +
                   to_text(expected) + " offsets");
  if (c.has(2)) {
    const TensorType& mask = c.type(2);
    if (mask.rank() != 4 || !c.agree(mask.dims[0], x.dims[0]) ||
        !c.agree(mask.dims[1], simplify(floordiv(expected, 2))) ||
        !c.agree(mask.dims[2], offset.dims[2]) || !c.agree(mask.dims[3], offset.dims[3]))
      return c.error("offset is " + to_string(offset) + ", mask is " + to_string(mask));
  }
  if (const int64_t d = c.attr_int("derivative", -1); d < -1 || d > 1)
    return c.error("derivative by dimension " + std::to_string(d));
  c.set_output(
      0, x.dtype,
      {x.dims[0], x.dims[1], Expr(kernel[0]), Expr(kernel[1]), offset.dims[2], offset.dims[3]});
  return {};
}
// x at the moved positions of kernel element (i[2], i[3]) of output (i[4], i[5]), times the mask.
void compute_deform_columns(ComputeContext& c) {
  const Buffer &x = c.in(0), &y = c.out();
  const auto [strides, dilations, pads] = moved_window(c);
  const DType t = interpolation_type(x->dtype);
  const Expr per_group = simplify(floordiv(x->shape[1], c.attr_int("offset_group", 1)));
  c.b.compute(
      y,
      [&](const Axes& i) {
        const Expr element = (floordiv(i[1], per_group) * y->shape[2] + i[2]) * y->shape[3] + i[3];
        GridSample s{x, "linear", {}, t, c.attr_int("derivative", -1)};
        Axes p;
        for (size_t d = 0; d < 2; ++d) {
          Expr moved = cast(
              t, load(c.in(1), {i[0], element * 2 + Expr(static_cast<int64_t>(d)), i[4], i[5]}));
          p.push_back(
              cast(t, i[4 + d] * Expr(strides[d]) + i[2 + d] * Expr(dilations[d]) - Expr(pads[d])) +
              moved);
          s.borders.push_back({"zeros", x->shape[2 + d], constant(0, t), constant(0, t)});
        }
        Expr value = s.sum(0, p, {i[0], i[1]}, bool_imm(true));
        if (c.has(2)) value = value * cast(t, load(c.in(2), {i[0], element, i[4], i[5]}));
        return cast(y->dtype, value);
      },
      "deform_columns");
}

// By the offsets: how the element moves with its position, summed up over the channels of a group.
void gradient_of_deform_columns(GradientContext& c) {
  c.add_transposed(0);
  if (c.has(2)) c.add_transposed(2);
  if (!c.wants(1)) return;
  const NodeView node = c.view();
  const std::vector<Expr> y = c.type(c.dy().id).dims, offset = node.type(1).dims;
  const Expr groups = node.attr_int("offset_group", 1);
  std::vector<Expr> grouped{y[0], groups, simplify(floordiv(y[1], groups))};
  grouped.insert(grouped.end(), y.begin() + 2, y.end());
  const std::vector<Expr> one_each{offset[0], simplify(floordiv(offset[1], 2)), Expr(1), offset[2],
                                   offset[3]};
  std::vector<ValueId> parts;
  for (int64_t d : {0, 1}) {
    Attributes a = node.node().attributes;
    a["derivative"] = d;
    const V moves = c.dy() * c.dy().make("deform_columns", node.node().inputs, std::move(a));
    const V sum = reduce("reduce_sum", {c, c.reshape(moves.id, grouped)}, {2}, false);
    parts.push_back(c.reshape(sum.id, one_each));
  }
  c.add(1, {c, c.reshape(c.op("concat", parts, {{"axis", int64_t{2}}}), offset)});
}

// --- col2im ------------------------------------------------------------------------------------

struct Columns {
  std::vector<Expr> image, block, steps;
  std::vector<int64_t> strides, dilations, pads;
};
Result<Columns> columns(const NodeView& c) {
  auto image = known_dims(c, 1), block = known_dims(c, 2);
  if (!image || !block)
    return needs_value("image_shape or block_shape is not known at compile time");
  const size_t n = image->size();
  Columns p{*image,
            *block,
            {},
            c.attr_ints("strides", std::vector<int64_t>(n, 1)),
            c.attr_ints("dilations", std::vector<int64_t>(n, 1)),
            c.attr_ints("pads", std::vector<int64_t>(2 * n, 0))};
  if (block->size() != n || p.strides.size() != n || p.dilations.size() != n ||
      p.pads.size() != 2 * n || c.rank(0) != 3)
    return invalid("x is " + to_string(c.type(0)) +
                   ", and image_shape, block_shape, strides, dilations and pads differ in length");
  for (size_t d = 0; d < n; ++d)
    p.steps.push_back(simplify(floordiv(p.image[d] + Expr(p.pads[d] + p.pads[d + n]) -
                                            (p.block[d] - 1) * Expr(p.dilations[d]) - 1,
                                        p.strides[d]) +
                               1));
  return p;
}
Status infer_col2im(InferContext& c) {
  auto p = columns(c);
  if (!p.ok()) return c.at_node(p.error());
  Expr size = 1, steps = 1;
  for (const Expr& e : p->block) size = size * e;
  for (const Expr& e : p->steps) steps = steps * max(e, 0);
  size = simplify(size);
  if (as_int(size).value_or(1) < 1) return c.error("block of " + to_text(size) + " elements");
  const Expr channels = simplify(floordiv(c.dim(0, 1), max(size, 1)));
  if (!c.agree(c.dim(0, 1), simplify(channels * size)) || !c.agree(c.dim(0, 2), simplify(steps)))
    return c.error("x is " + to_string(c.type(0)) + ", expected a multiple of " + to_text(size) +
                   " rows and " + to_text(simplify(steps)) + " columns");
  std::vector<Expr> dims{c.dim(0, 0), channels};
  dims.insert(dims.end(), p->image.begin(), p->image.end());
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_col2im(ComputeContext& c) {
  const Columns p = columns(c).value();
  const Buffer &x = c.in(0), &y = c.out();
  const DType t = accumulator(y->dtype);
  Buffer sum = t == y->dtype ? y : c.b.temp("sum", t, y->shape);
  c.b.reduce(
      sum, p.block, Combiner::kSum,
      [&](const Axes& i, const Axes& k) {
        Expr row = i[1], column = 0, inside = bool_imm(true);
        for (size_t d = 0; d < p.block.size(); ++d) {
          Expr from = i[2 + d] + Expr(p.pads[d]) - k[d] * Expr(p.dilations[d]),
               step = floordiv(from, p.strides[d]);
          inside = logical_and(inside, logical_and(from >= Expr(0), step < p.steps[d]));
          if (p.strides[d] > 1)
            inside = logical_and(inside, eq(floormod(from, p.strides[d]), Expr(0)));
          row = row * p.block[d] + k[d];
          column = column * p.steps[d] + step;
        }
        return cast(t, select(inside, load(x, {i[0], row, column}), constant(0, x->dtype)));
      },
      "col2im");
  if (sum != y)
    c.b.compute(y, [&](const Axes& i) { return cast(y->dtype, load(sum, i)); }, "round");
}

}  // namespace

const std::vector<OpDef>& column_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 4, 5}}, i2{DType::kInt64, {2}};
  static const std::vector<AttributeDef> window{{"strides", AttributeKind::kInts, "default 1"},
                                                {"dilations", AttributeKind::kInts, "default 1"},
                                                {"pads", AttributeKind::kInts, "default 0"}};
  static const std::vector<OpDef> ops{
      {.name = "deform_columns",
       .summary = "the windows of a convolution with every element moved by an offset: [n, c, "
                  "kernel..., out...]",
       .operands = {{"x"}, {"offset"}, {"mask", OperandDef::kOptional}},
       .attributes =
           [] {
             auto a = window;
             a.push_back({"kernel_shape", AttributeKind::kInts, "extents of the window"});
             a.push_back({"offset_group", AttributeKind::kInt,
                          "channels share offsets in so many groups; default 1"});
             a.push_back(kSampleDerivative);
             return a;
           }(),
       .infer_type = infer_deform_columns,
       .compute = compute_deform_columns,
       .gradient = gradient_of_deform_columns,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 8, 3, 4}}},
                   .attributes = {{"kernel_shape", std::vector<int64_t>{2, 2}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__DeformConv.html"},
      {.name = "col2im",
       .summary = "columns of windows added up to an image",
       .operands = {{"x"}, {"image_shape"}, {"block_shape"}},
       .attributes = window,
       .fusion = FusionKind::kReduction,
       .reads_stored = true,
       .infer_type = infer_col2im,
       .compute = compute_col2im,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {1, 8, 9}}, i2, i2},
                   .values = {{}, {4, 4}, {2, 2}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Col2Im.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
