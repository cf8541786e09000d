// Reading between elements, at positions that are data.
//
// grid_sample is the spatial transformer's sampler (Jaderberg et al., 2015). Offsets and weights of
// the taps depend on the grid point alone, so they are tabled once and read by all channels.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/rounding.h"
#include "ir/ops/sort_loops.h"
#include "ir/ops/taps.h"

namespace tilewright::ir {
namespace {

Status infer_grid_sample(InferContext& c) {
  const auto &x = c.type(0), &grid = c.type(1);
  if (x.rank() < 3 || grid.rank() != x.rank() || !c.agree(grid.dims.back(), x.rank() - 2))
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
  for (size_t d = 2; d < x.dims.size(); ++d)
    if (!c.at_most(1, x.dims[d], "there must be something to sample"))
      return c.error("x is " + to_string(x) + ": nothing to sample");
  if (const int64_t d = c.attr_int("derivative", -1);
      d < -1 || d >= x.rank() - 2 || (d >= 0 && mode == "nearest"))
    return c.error("derivative by dimension " + std::to_string(d) + " of mode " + mode);
  std::vector<Expr> dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}

// Grid coordinates in [-1, 1], last dimension of x first, as the position in x's dimension r, perhaps
// outside; i: a point of the grid.
Expr unlimited_position(const ComputeContext& c, const GridSample& s, const Axes& i, size_t r) {
  const DType t = s.t;
  Axes at = i;
  at.push_back(Expr(static_cast<int64_t>(s.borders.size() - 1 - r)));
  const Expr v = cast(t, load(c.in(1), at)) + constant(1, t), one = constant(1, t),
             two = constant(2, t), n = cast(t, s.borders[r].extent);
  return c.attr_int("align_corners") ? v / two * (n - one) : (v * n - one) / two;
}
// The same, brought back where that is done for positions.
Expr grid_position(const ComputeContext& c, const GridSample& s, const Axes& i, size_t r) {
  const Borders& b = s.borders[r];
  Expr p = unlimited_position(c, s, i, r);
  if (s.mode == "nearest") p = unary(UnaryOp::kRoundEven, p);
  // Cubic taps are brought back one by one: the weights stay those of the position outside.
  if (b.padding == "border" && s.mode != "cubic")
    return select(p < b.low, constant(0, s.t),
                  select(p > b.high, cast(s.t, b.extent) - constant(1, s.t), p));
  return b.padding == "reflection" ? b.reflect(p) : p;
}
// How it moves with the coordinate.
Expr position_slope(const ComputeContext& c, const GridSample& s, const Axes& i, size_t r) {
  const Borders& b = s.borders[r];
  const Expr n = cast(s.t, b.extent), one = constant(1, s.t);
  const Expr slope = (c.attr_int("align_corners") ? n - one : n) / constant(2, s.t),
             p = unlimited_position(c, s, i, r);
  if (b.padding == "border" && s.mode != "cubic")
    return select(logical_or(p<b.low, p> b.high), constant(0, s.t), slope);
  return b.padding == "reflection" ? slope * b.reflect_slope(p) : slope;
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
          at = clamp(at, 0, b.extent - 1);  // where it is outside the sum is below 0 anyway
          return cast(offset.dtype, select(inside, at * behind, Expr(offset.outside)));
        },
        "offset");
    if (taps == 1) continue;
    t.weight.push_back(c.b.temp("weight", s.t, points));
    c.b.compute(
        t.weight.back(),
        [&](const Axes& i) {
          const Expr weight = s.weights(r, part(i))[k];
          return static_cast<int64_t>(r) == s.derivative ? weight * position_slope(c, s, i, r)
                                                         : weight;
        },
        "weight");
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
    return cast(
        s.mode == "nearest" ? s.x->dtype : weighted_type(s.x->dtype),
        s.borders[0].padding == "zeros" ? select(offset >= zero, x, constant(0, s.x->dtype)) : x);
  }
  Expr result;
  for (size_t k = 0; k < tables[d].offset.size(); ++k) {
    const Expr here = load(tables[d].offset[k], i);
    Expr term = tap_sum(s, tables, d + 1, i, channel, offset ? offset + here : here);
    if (!tables[d].weight.empty()) term = cast(term.dtype(), load(tables[d].weight[k], i)) * term;
    result = result ? result + term : term;
  }
  return result;
}
void compute_grid_sample(ComputeContext& c) {
  GridSample s{c.in(0),
               c.attr_string("mode", "linear"),
               {},
               weighted_type(c.in(0)->dtype),
               c.attr_int("derivative", -1)};
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
        const Expr sum = tap_sum(s, tables, 0, point, {i[0], i[1]}, nullptr);
        return s.mode == "nearest" ? cast(c.out()->dtype, sum) : truncated_sum(c.out()->dtype, sum);
      },
      "grid_sample");
}

// By the grid: for each dimension how the sample moves with the position, summed up over channels.
void gradient_of_grid_sample(GradientContext& c) {
  c.add_transposed(0);
  if (!c.wants(1) || c.view().attr_string("mode", "linear") == "nearest") return;
  const V x = c.in(0), grid = c.in(1);
  std::vector<Expr> dims = c.type(grid.id).dims;
  dims.back() = 1;
  std::vector<ValueId> parts;
  for (int r = x.rank() - 2; r-- > 0;) {  // the last dimension of x has the first coordinate
    Attributes a = c.view().node().attributes;
    a["derivative"] = static_cast<int64_t>(r);
    const V moves = x.make("grid_sample", {x.id, grid.id}, std::move(a));
    parts.push_back(c.reshape(reduce("reduce_sum", c.dy() * moves, {1}, false).id, dims));
  }
  c.add(1, x.make("concat", parts, {{"axis", static_cast<int64_t>(dims.size()) - 1}}));
}

}  // namespace

const std::vector<OpDef>& sampling_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 4, 5}};
  static const std::vector<OpDef> ops{
      {.name = "grid_sample",
       .summary = "x between its elements, at the positions of a grid in [-1, 1]; integers are "
                  "cut off towards zero, and limited to the range of their type",
       .operands = {{"x"}, {"grid"}},
       .attributes = {{"mode", AttributeKind::kString, "linear, nearest or cubic"},
                      {"padding_mode", AttributeKind::kString, "zeros, border or reflection"},
                      {"align_corners", AttributeKind::kInt, "-1 and 1 are centres of elements"},
                      kSampleDerivative},
       .infer_type = infer_grid_sample,
       .compute = compute_grid_sample,
       .gradient = gradient_of_grid_sample,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 3, 3, 2}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__GridSample.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
