// Reading between elements, at positions that are data; columns of sliding windows added up to an
// image.
//
// grid_sample is the spatial transformer's sampler (Jaderberg et al., 2015). Offsets and weights of
// the taps depend on the grid point alone, so they are tabled once and read by all channels.
// deform_columns is the im2col of deformable convolution (Dai et al., 2017; the product with the
// weights is a matmul behind it), and col2im its adjoint for ordinary windows.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// The type that positions and weights between elements are computed in.
DType interpolation_type(DType t) { return t == DType::kFloat64 ? t : DType::kFloat32; }

// --- grid_sample -------------------------------------------------------------------------------

Status infer_grid_sample(InferContext& c) {
  const auto &x = c.type(0), &grid = c.type(1);
  if (x.rank() < 3 || grid.rank() != x.rank() ||
      as_int(grid.dims.back()).value_or(x.rank() - 2) != x.rank() - 2)
    return c.error("x is " + to_string(x) + ", grid is " + to_string(grid) +
                   ": expected [n, c, spatial...] and [n, spatial..., " +
                   std::to_string(x.rank() - 2) + "]");
  if (!c.agree(x.dims[0], grid.dims[0]))
    return c.error("x is " + to_string(x) + ", grid is " + to_string(grid) + ": batches differ");
  if (!is_float(grid.dtype)) return c.error("grid is " + to_string(grid));
  const std::string mode = c.attr_string("mode", "linear"),
                    padding = c.attr_string("padding_mode", "zeros");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return c.error("mode is '" + mode + "'");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return c.error("padding_mode is '" + padding + "'");
  std::vector<Expr> dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}

// How positions outside x are brought back: v beyond [low, high] is mirrored at the near border,
// again and again.
struct Borders {
  std::string padding;
  Expr extent, low, high;  // low, high: floats
  Expr reflect(const Expr& v) const {
    const DType t = v.dtype();
    Expr range = high - low, below = v < low, beyond = select(below, low - v, v - high);
    Expr turns =
        unary(UnaryOp::kTrunc, beyond / select(eq(range, constant(0, t)), constant(1, t), range));
    Expr rest = select(eq(range, constant(0, t)), constant(0, t), beyond - turns * range);
    Expr even = eq(binary(BinaryOp::kFloorMod, turns, constant(2, t)), constant(0, t));
    Expr mirrored = select(eq(even, below), low + rest, high - rest);
    return select(logical_or(below, v > high), mirrored, v);
  }
};
// Element number `at` (an integer, perhaps outside) of one dimension; `inside` becomes false where
// zeros are read.
Expr border_index(const Borders& b, const Expr& at, Expr& inside) {
  const Expr last = b.extent - 1;
  if (b.padding == "border") return clamp(at, 0, last);
  if (b.padding == "reflection")
    return clamp(cast(DType::kInt64, b.reflect(cast(b.low.dtype(), at))), 0, last);
  inside = logical_and(inside, logical_and(at >= Expr(0), at < b.extent));
  return at;
}
std::vector<Expr> tap_weights(const std::string& mode, const Expr& part) {
  const DType t = part.dtype();
  auto number = [t](double v) { return constant(v, t); };
  const Expr one = number(1);
  if (mode == "linear") return {one - part, part};
  const double a = -0.75;
  auto near = [&](const Expr& x) { return (number(a + 2) * x - number(a + 3)) * x * x + one; };
  auto far = [&](const Expr& x) {
    return ((number(a) * x - number(5 * a)) * x + number(8 * a)) * x - number(4 * a);
  };
  return {far(part + one), near(part), near(one - part), far(number(2) - part)};
}
struct GridSample {
  Buffer x;
  std::string mode;
  std::vector<Borders> borders;
  DType t;
  // Weighted sum over the taps of dimensions d, d + 1, ...; `at` and `inside` hold those before.
  Expr sum(size_t d, const Axes& p, Axes at, Expr inside) const {
    if (d == borders.size()) return cast(t, select(inside, load(x, at), constant(0, x->dtype)));
    Expr low = unary(UnaryOp::kFloor, p[d]);
    const Expr first = cast(DType::kInt64, low);
    std::vector<Expr> weights =
        mode == "nearest" ? std::vector<Expr>{Expr()} : tap_weights(mode, p[d] - low);
    Expr result;
    for (size_t k = 0; k < weights.size(); ++k) {
      Expr here = inside;
      at.push_back(border_index(
          borders[d], first + Expr(static_cast<int64_t>(k)) - Expr(mode == "cubic" ? 1 : 0), here));
      Expr term = sum(d + 1, p, at, here);
      at.pop_back();
      if (weights[k]) term = weights[k] * term;
      result = result ? result + term : term;
    }
    return result;
  }
};
// Grid coordinates in [-1, 1], last dimension of x first, as the position in x's dimension r; i: a
// point of the grid.
Expr grid_position(const ComputeContext& c, const GridSample& s, const Axes& i, size_t r) {
  const DType t = s.t;
  const Borders& b = s.borders[r];
  Axes at = i;
  at.push_back(Expr(static_cast<int64_t>(s.borders.size() - 1 - r)));
  Expr v = cast(t, load(c.in(1), at)) + constant(1, t), one = constant(1, t), two = constant(2, t),
       n = cast(t, b.extent);
  Expr p = c.attr_int("align_corners") ? v / two * (n - one) : (v * n - one) / two;
  if (s.mode == "nearest") p = unary(UnaryOp::kRoundEven, p);
  // Cubic taps are brought back one by one: the weights stay those of the position outside.
  if (b.padding == "border" && s.mode != "cubic")
    return select(p < b.low, constant(0, t), select(p > b.high, n - one, p));
  return b.padding == "reflection" ? b.reflect(p) : p;
}

// What all channels read alike, along one dimension of x and for each of its taps: how far behind
// the first element of the channel the tap lies, and its weight.
struct TapTables {
  std::vector<Buffer> offset, weight;  // [n, spatial...]; no weights: nearest
};
// Offsets of one channel are added up in 32 bits where these surely suffice. Outside x they are
// `outside`, so that a sum with one of these is below 0.
struct OffsetType {
  DType dtype;
  int64_t outside;
};
// `elements` of a channel of so many dimensions.
OffsetType offset_type(const Expr& elements, size_t dims) {
  const auto n = static_cast<int64_t>(dims);
  const int64_t near = (int64_t{1} << 31) / n;  // as many of these as dimensions still fit
  if (as_int(elements).value_or(near) < near) return {DType::kInt32, -near};
  return {DType::kInt64, -((int64_t{1} << 62) / n)};
}

TapTables fill_taps(ComputeContext& c, const GridSample& s, size_t r) {
  const Borders& b = s.borders[r];
  const std::vector<Expr> points(c.in(1)->shape.begin(), c.in(1)->shape.end() - 1);
  Buffer position = c.b.temp("position", s.t, points);
  c.b.compute(position, [&](const Axes& i) { return grid_position(c, s, i, r); }, "position");
  auto part = [&](const Axes& i) {
    Expr p = load(position, i);
    return p - unary(UnaryOp::kFloor, p);
  };
  Expr behind = 1, elements = 1;
  for (size_t d = s.borders.size(); d-- > 0;) {
    if (d == r) behind = elements;
    elements = elements * s.borders[d].extent;
  }
  const OffsetType offset = offset_type(elements, s.borders.size());
  TapTables t;
  const size_t taps = s.mode == "nearest" ? 1 : s.mode == "linear" ? 2 : 4;
  for (size_t k = 0; k < taps; ++k) {
    t.offset.push_back(c.b.temp("offset", offset.dtype, points));
    c.b.compute(
        t.offset.back(),
        [&](const Axes& i) {
          Expr inside = bool_imm(true),
               first = cast(DType::kInt64, unary(UnaryOp::kFloor, load(position, i)));
          Expr at = border_index(
              b, first + Expr(static_cast<int64_t>(k)) - Expr(s.mode == "cubic" ? 1 : 0), inside);
          return cast(offset.dtype, select(inside, at * behind, Expr(offset.outside)));
        },
        "offset");
    if (taps == 1) continue;
    t.weight.push_back(c.b.temp("weight", s.t, points));
    c.b.compute(
        t.weight.back(), [&](const Axes& i) { return tap_weights(s.mode, part(i))[k]; }, "weight");
  }
  return t;
}
// Weighted sum over the taps of dimensions d, d + 1, ... of channel `channel` at point i; `offset`
// (null: 0) is the sum of those before.
Expr tap_sum(const GridSample& s, const std::vector<TapTables>& tables, size_t d, const Axes& i,
             const Axes& channel, const Expr& offset) {
  if (d == tables.size()) {
    std::vector<Expr> extents;
    for (const Borders& b : s.borders) extents.push_back(b.extent);
    Axes at = channel;
    for (const Expr& e : unravel(cast(DType::kInt64, offset), extents)) at.push_back(e);
    const Expr x = load(s.x, at), zero = constant(0, offset.dtype());
    return cast(s.t, s.borders[0].padding == "zeros"
                         ? select(offset >= zero, x, constant(0, s.x->dtype))
                         : x);
  }
  Expr result;
  for (size_t k = 0; k < tables[d].offset.size(); ++k) {
    const Expr here = load(tables[d].offset[k], i);
    Expr term = tap_sum(s, tables, d + 1, i, channel, offset ? offset + here : here);
    if (!tables[d].weight.empty()) term = load(tables[d].weight[k], i) * term;
    result = result ? result + term : term;
  }
  return result;
}
void compute_grid_sample(ComputeContext& c) {
  GridSample s{c.in(0), c.attr_string("mode", "linear"), {}, interpolation_type(c.in(0)->dtype)};
  const bool corners = c.attr_int("align_corners") != 0;
  for (size_t d = 2; d < s.x->shape.size(); ++d) {
    Expr n = cast(s.t, s.x->shape[d]), half = constant(0.5, s.t);
    s.borders.push_back({c.attr_string("padding_mode", "zeros"), s.x->shape[d],
                         corners ? constant(0, s.t) : constant(-0.5, s.t),
                         corners ? n - constant(1, s.t) : n - half});
  }
  std::vector<TapTables> tables;
  for (size_t r = 0; r < s.borders.size(); ++r) tables.push_back(fill_taps(c, s, r));
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes point{within(i[0], c.dim(0, 0), c.dim(1, 0))};
        point.insert(point.end(), i.begin() + 2, i.end());
        return cast(c.out()->dtype, tap_sum(s, tables, 0, point, {i[0], i[1]}, nullptr));
      },
      "grid_sample");
}

// --- deform_columns ----------------------------------------------------------------------------

Status infer_deform_columns(InferContext& c) {
  const auto &x = c.type(0), &offset = c.type(1);
  const auto kernel = c.attr_ints("kernel_shape");
  if (x.rank() != 4 || offset.rank() != 4 || kernel.size() != 2)
    return c.error("x is " + to_string(x) + ", offset is " + to_string(offset));
  const int64_t group = c.attr_int("offset_group", 1), expected = group * kernel[0] * kernel[1] * 2;
  if (group < 1 || as_int(x.dims[1]).value_or(0) % group ||
      as_int(offset.dims[1]).value_or(expected) != expected)
    return c.error("x is " + to_string(x) + ", offset is " + to_string(offset) + ": expected " +
                   std::to_string(expected) + " offsets");
  c.set_output(
      0, x.dtype,
      {x.dims[0], x.dims[1], Expr(kernel[0]), Expr(kernel[1]), offset.dims[2], offset.dims[3]});
  return {};
}
// x at the moved positions of kernel element (i[2], i[3]) of output (i[4], i[5]), times the mask.
void compute_deform_columns(ComputeContext& c) {
  const Buffer &x = c.in(0), &y = c.out();
  const auto strides = c.attr_ints("strides", {1, 1}), dilations = c.attr_ints("dilations", {1, 1}),
             pads = c.attr_ints("pads", {0, 0, 0, 0});
  const DType t = interpolation_type(x->dtype);
  const Expr per_group = simplify(floordiv(x->shape[1], c.attr_int("offset_group", 1)));
  c.b.compute(
      y,
      [&](const Axes& i) {
        const Expr element = (floordiv(i[1], per_group) * y->shape[2] + i[2]) * y->shape[3] + i[3];
        GridSample s{x, "linear", {}, t};
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
  Expr size = 1;
  for (const Expr& e : p->block) size = size * e;
  std::vector<Expr> dims{c.dim(0, 0), simplify(floordiv(c.dim(0, 1), size))};
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

const std::vector<OpDef>& sampling_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 4, 5}}, i2{DType::kInt64, {2}};
  static const std::vector<AttributeDef> window{{"strides", AttributeKind::kInts, "default 1"},
                                                {"dilations", AttributeKind::kInts, "default 1"},
                                                {"pads", AttributeKind::kInts, "default 0"}};
  static const std::vector<OpDef> ops{
      {.name = "grid_sample",
       .summary = "x between its elements, at the positions of a grid in [-1, 1]",
       .operands = {{"x"}, {"grid"}},
       .attributes = {{"mode", AttributeKind::kString, "linear, nearest or cubic"},
                      {"padding_mode", AttributeKind::kString, "zeros, border or reflection"},
                      {"align_corners", AttributeKind::kInt, "-1 and 1 are centres of elements"}},
       .infer_type = infer_grid_sample,
       .compute = compute_grid_sample,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 3, 3, 2}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__GridSample.html"},
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
             return a;
           }(),
       .infer_type = infer_deform_columns,
       .compute = compute_deform_columns,
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
