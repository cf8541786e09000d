// Resampling along axes. For each resized axis, small tables hold the positions and weights of the
// source elements of every output position; the result is a weighted sum over them. Elements that
// lie side by side come last: rows are summed up first, which reads them as they lie.
//
// Separable interpolation: the tables cost O(out) per axis, the sum taps^axes per element, or taps
// * axes when one axis is summed after the other (sum_many_taps), which antialiasing filters need.
#include <algorithm>
#include <cmath>

#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/resize_plan.h"
#include "ir/ops/rounding.h"

namespace tilewright::ir {
namespace {

constexpr int kMostTaps = 16;  // of all axes together: more are summed one axis after the other
// Rows this many times as long as the results made of them are not summed up as a whole.
constexpr int64_t kMostShrinking = 8;

Status infer_resize(InferContext& c) {
  auto p = resize_plan(c);
  if (!p.ok()) return c.at_node(p.error());
  c.set_output(0, c.type(0).dtype, p->dims);
  return {};
}

// --- tables ------------------------------------------------------------------------------------

struct AxisTables {
  ResizeAxis a;
  int taps = 1, first = 0;  // taps of output o are at floor(position) + first ...
  Buffer position;          // [out]
  Buffer index;             // [taps, out], inside x
  Buffer weight;            // [taps, out]; null: nearest
};

// Positions are f32 where the nearest element is taken: rounding then absorbs that scales are
// rounded numbers.
DType position_type(const ResizePlan& p) {
  return p.mode == "nearest" ? DType::kFloat32 : DType::kFloat64;
}

// The position in x of output position o. Sources: the formulas of ONNX Resize; a scale need not be
// out / in, as the result has floor(in * scale) elements.
//
// Then align_corners and tf_crop_and_resize mean the number of elements there are: only so does the
// last one lie at the corner that they name, and so PyTorch (interpolate with scale_factor) and
// TensorFlow compute what their exporters write as these modes, and ONNX Runtime what it reads.
// ONNX's own reference takes in * scale even if that is no whole number, and misses the corner. The
// half-pixel modes and asymmetric take the scale that is given, in all of them;
// half_pixel_symmetric is made for the difference.
Expr source_position(const ComputeContext& c, const ResizePlan& p, const ResizeAxis& a,
                     const Expr& o) {
  const DType t = position_type(p);
  auto number = [t](double v) { return constant(v, t); };
  const Expr x = cast(t, o), half = number(0.5), one = number(1), in = cast(t, a.in),
             scale = cast(t, a.scale), out = cast(t, a.out);
  Expr pixel = (x + half) / scale - half;
  if (p.coordinates == "asymmetric") return x / scale;
  if (p.coordinates == "tf_half_pixel_for_nn") return (x + half) / scale;  // opset 11 alone
  if (p.coordinates == "align_corners")
    return select(eq(out, one), number(0), x * (in - one) / (out - one));
  if (p.coordinates == "pytorch_half_pixel") return select(a.out > Expr(1), pixel, number(0));
  if (p.coordinates == "half_pixel_symmetric")
    return in / number(2) * (one - out / (in * scale)) + pixel;
  if (p.coordinates == "tf_crop_and_resize") {
    Expr begin = cast(t, load(c.in(1), {Expr(a.roi_begin)})),
         end = cast(t, load(c.in(1), {Expr(a.roi_end)}));
    Expr inner = select(eq(out, one), (end - begin) * (in - one) / number(2),
                        x * (end - begin) * (in - one) / (out - one));
    return begin * (in - one) + inner;
  }
  return pixel;
}
Expr nearest_index(const std::string& how, const Expr& x) {
  Expr low = unary(UnaryOp::kFloor, x), part = x - low, half = constant(0.5, x.dtype());
  if (how == "floor") return low;
  if (how == "ceil") return unary(UnaryOp::kCeil, x);
  return select(how == "round_prefer_floor" ? part > half : part >= half,
                low + constant(1, x.dtype()), low);
}
// Weight of an element at distance x, in units of the (stretched) kernel.
Expr kernel_weight(const std::string& mode, const Expr& distance, double a) {
  Expr x = unary(UnaryOp::kAbs, distance);
  if (mode == "linear") return max(f64(1) - x, f64(0));
  Expr near = ((f64(a + 2) * x - f64(a + 3)) * x * x) + f64(1);
  Expr far = ((f64(a) * x - f64(5 * a)) * x + f64(8 * a)) * x - f64(4 * a);
  return select(x <= f64(1), near, select(x < f64(2), far, f64(0)));
}
Expr tap_position(const AxisTables& t, const Expr& o, const Expr& tap) {
  return cast(DType::kInt64, unary(UnaryOp::kFloor, load(t.position, {o}))) + Expr(t.first) + tap;
}

void fill_weights(ComputeContext& c, const ResizePlan& p, AxisTables& t, DType acc) {
  const double shrink = p.antialias ? std::min(*t.a.known, 1.0) : 1.0,
               cubic = c.attr_float("cubic_coeff_a", -0.75);
  auto raw_weight = [&](const Axes& i) {
    Expr q = tap_position(t, i[1], i[0]);
    Expr w = kernel_weight(p.mode, (f64(q) - load(t.position, {i[1]})) * f64(shrink), cubic);
    if (!p.exclude_outside) return w;
    return select(logical_and(q >= Expr(0), q < t.a.in), w, f64(0));
  };
  t.weight = c.b.temp("weights", acc, {Expr(t.taps), t.a.out});
  if (!p.antialias && !p.exclude_outside) {  // their sum is 1
    c.b.compute(t.weight, [&](const Axes& i) { return cast(acc, raw_weight(i)); }, "weights");
    return;
  }
  Buffer raw = c.b.temp("raw_weights", DType::kFloat64, {Expr(t.taps), t.a.out}),
         sum = c.b.temp("weight_sum", DType::kFloat64, {t.a.out});
  c.b.compute(raw, raw_weight, "raw_weights");
  c.b.reduce(
      sum, {Expr(t.taps)}, Combiner::kSum,
      [&](const Axes& i, const Axes& r) { return load(raw, {r[0], i[0]}); }, "weight_sum");
  c.b.compute(
      t.weight, [&](const Axes& i) { return cast(acc, load(raw, i) / load(sum, {i[1]})); },
      "weights");
}

// Indices are of 32 bits where these surely suffice: more of them are looked up at once.
DType index_type(const Expr& extent) {
  return as_int(extent).value_or(INT64_MAX) <= INT32_MAX ? DType::kInt32 : DType::kInt64;
}
AxisTables fill_tables(ComputeContext& c, const ResizePlan& p, const ResizeAxis& a, DType acc) {
  AxisTables t{a};
  const int reach = p.mode == "cubic" ? 2 : 1;
  if (p.antialias) {
    t.first = static_cast<int>(std::floor(-reach / std::min(*a.known, 1.0))) + 1;
    t.taps = 2 - 2 * t.first;
  } else if (p.mode != "nearest") {
    t.first = 1 - reach;
    t.taps = 2 * reach;
  }
  t.position = c.b.temp("positions", position_type(p), {a.out});
  c.b.compute(
      t.position, [&](const Axes& i) { return source_position(c, p, a, i[0]); }, "positions");
  const DType type = index_type(a.in);
  t.index = c.b.temp("source", type, {Expr(t.taps), a.out});
  c.b.compute(
      t.index,
      [&](const Axes& i) {
        Expr q = p.mode == "nearest"
                     ? cast(DType::kInt64, nearest_index(p.nearest, load(t.position, {i[1]})))
                     : tap_position(t, i[1], i[0]);
        return cast(type, clamp(q, 0, a.in - 1));
      },
      "source");
  if (p.mode != "nearest") fill_weights(c, p, t, acc);
  return t;
}

// --- the sum -----------------------------------------------------------------------------------

Expr source_index(const AxisTables& t, const Expr& tap, const Expr& o) {
  return cast(DType::kInt64, load(t.index, {tap, o}));
}
// Weighted sum over the taps of tables[from ...], written out.
Expr expanded_sum(const std::vector<AxisTables>& tables, size_t from, const Buffer& x,
                  const Axes& i, Axes at, DType acc) {
  if (from == tables.size()) return cast(acc, load(x, at));
  const AxisTables& t = tables[from];
  const auto d = static_cast<size_t>(t.a.axis);
  Expr sum;
  for (int tap = 0; tap < t.taps; ++tap) {
    at[d] = source_index(t, Expr(tap), i[d]);
    Expr term = expanded_sum(tables, from + 1, x, i, at, acc);
    if (t.weight) term = load(t.weight, {Expr(tap), i[d]}) * term;
    sum = sum ? sum + term : term;
  }
  return sum;
}
Expr is_outside(const std::vector<AxisTables>& tables, const Axes& i) {
  Expr outside = bool_imm(false);
  for (const AxisTables& t : tables) {
    Expr x = load(t.position, {i[static_cast<size_t>(t.a.axis)]});
    outside =
        logical_or(outside, logical_or(x<constant(0, x.dtype()), x> cast(x.dtype(), t.a.in - 1)));
  }
  return outside;
}

int64_t taps_of(const std::vector<AxisTables>& tables) {
  int64_t taps = 1;
  for (const AxisTables& t : tables) taps = std::min<int64_t>(taps * t.taps, INT32_MAX);
  return taps;
}
// x, or what remains of it to be summed up once the taps of `tables` are few enough.
Buffer sum_many_taps(ComputeContext& c, Buffer x, std::vector<AxisTables>& tables, DType acc) {
  std::vector<Expr> shape = x->shape;
  while (taps_of(tables) > kMostTaps) {
    const AxisTables one = tables.front();
    tables.erase(tables.begin());
    const auto d = static_cast<size_t>(one.a.axis);
    shape[d] = one.a.out;
    Buffer next = c.b.temp("resized", acc, shape);
    c.b.reduce(
        next, {Expr(one.taps)}, Combiner::kSum,
        [&](const Axes& i, const Axes& r) {
          Axes at = i;
          at[d] = source_index(one, r[0], i[d]);
          return load(one.weight, {r[0], i[d]}) * cast(acc, load(x, at));
        },
        "resize_axis");
    x = next;
  }
  return x;
}
// The axis `inner` last; whether it is resized and others too, so that whole rows of x can be
// summed up first.
bool sums_rows_first(int64_t inner, std::vector<AxisTables>& tables) {
  auto last = std::find_if(tables.begin(), tables.end(),
                           [&](const AxisTables& t) { return t.a.axis == inner; });
  if (last == tables.end()) return false;
  std::rotate(last, last + 1, tables.end());
  const AxisTables& t = tables.back();
  const auto in = as_int(t.a.in), out = as_int(t.a.out);
  const bool shrinks = in && out && *in > kMostShrinking * *out;
  return !shrinks && t.taps > 1 && taps_of(tables) > t.taps;
}

void compute_resize(ComputeContext& c) {
  const ResizePlan p = resize_plan(c).value();
  const Buffer& y = c.out();
  const DType t = y->dtype;
  const bool exact = p.mode == "nearest";
  const DType acc = exact ? t : weighted_type(t);
  std::vector<AxisTables> tables;
  for (const ResizeAxis& a : p.axes) tables.push_back(fill_tables(c, p, a, acc));
  const std::vector<AxisTables> all = tables;
  Buffer x = c.in(0);
  if (c.has_attribute("rows_first") && sums_rows_first(c.attr_int("rows_first"), tables)) {
    std::vector<AxisTables> others(tables.begin(), tables.end() - 1);
    tables = {tables.back()};
    x = sum_many_taps(c, x, others, acc);
    std::vector<Expr> shape = y->shape;
    shape[static_cast<size_t>(tables[0].a.axis)] = tables[0].a.in;
    Buffer rows = c.b.temp("rows", acc, shape);
    c.b.compute(
        rows, [&](const Axes& i) { return expanded_sum(others, 0, x, i, i, acc); }, "resize_rows");
    x = rows;
  }
  x = sum_many_taps(c, x, tables, acc);
  const bool extrapolate = p.coordinates == "tf_crop_and_resize";
  c.b.compute(
      y,
      [&](const Axes& i) {
        const Expr sum = expanded_sum(tables, 0, x, i, i, acc),
                   value = exact ? sum : rounded_sum(t, sum);
        return extrapolate ? select(is_outside(all, i),
                                    rounded_sum(t, f64(c.attr_float("extrapolation_value"))), value)
                           : value;
      },
      "resize");
}

}  // namespace

const std::vector<OpDef>& resize_ops() {
  static const std::vector<OpDef> ops{
      {.name = "resize",
       .summary =
           "x resampled along axes, by scales or to sizes; of floor(extent * scale) elements, "
           "whose number is the resized length for align_corners and tf_crop_and_resize, "
           "while the other coordinates take the scale as it is given; integers are rounded, "
           "halves to even, and limited to the range of their type",
       .operands = {{"x"},
                    {"roi", OperandDef::kOptional},
                    {"scales", OperandDef::kOptional},
                    {"sizes", OperandDef::kOptional}},
       .attributes =
           {{"mode", AttributeKind::kString, "nearest, linear or cubic"},
            {"coordinates", AttributeKind::kString,
             "coordinate_transformation_mode of ONNX; default half_pixel"},
            {"nearest_mode", AttributeKind::kString,
             "round_prefer_floor, round_prefer_ceil, floor or ceil"},
            {"axes", AttributeKind::kInts, "of scales, sizes and roi; absent: all"},
            {"policy", AttributeKind::kString, "stretch, not_larger or not_smaller"},
            {"antialias", AttributeKind::kInt, "the kernel is stretched when x shrinks"},
            {"exclude_outside", AttributeKind::kInt, "elements outside x weigh nothing"},
            {"cubic_coeff_a", AttributeKind::kFloat, "default -0.75"},
            {"extrapolation_value", AttributeKind::kFloat, "outside x, for tf_crop_and_resize"},
            {"rows_first", AttributeKind::kInt,
             "the dimension of rows: sums over the other dimensions are made of whole rows, "
             "and summed up along these then"}},
       .fusion = FusionKind::kReduction,
       .channels = Channels::kAlong,
       .reads_stored = true,
       .infer_type = infer_resize,
       .compute = compute_resize,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {1, 2, 40, 60}},
                              {DType::kFloat32, {0}},
                              {DType::kFloat32, {4}}},
                   .attributes = {{"mode", std::string("linear")}, {"antialias", int64_t{1}}},
                   .values = {{}, {}, {1, 1, 0.325, 0.42}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Resize.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
