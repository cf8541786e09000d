// Pooling beyond max and mean: indices of the largest elements, sums, pooling over regions.
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"
#include "ir/ops/window.h"

namespace tilewright::ir {
namespace {

DType accumulator(DType t) { return is_float(t) && byte_size(t) == 2 ? DType::kFloat32 : t; }
WindowGeometry geometry(const ComputeContext& c) {
  return window_geometry(c, c.type(0).dims, c.attr_ints("kernel_shape")).value();
}

// Number of an element of x in row-major order; column-major within a channel when asked for.
Expr flat_index(const std::vector<Expr>& shape, const Axes& at, bool column_major) {
  Expr flat = at[0] * shape[1] + at[1];
  for (size_t d = 2; d < shape.size(); ++d) flat = flat * shape[d];
  Expr inner = 0;
  for (size_t k = 2; k < shape.size(); ++k) {
    const size_t d = column_major ? shape.size() + 1 - k : k;
    inner = inner * shape[d] + at[d];
  }
  return flat + inner;
}

Status infer_max_pool_indices(InferContext& c) {
  TW_RETURN_IF_ERROR(infer_pool(c));
  const std::vector<Expr> dims = c.outputs()[0].dims;
  c.set_output(1, DType::kInt64, dims);
  return {};
}
void compute_max_pool_indices(ComputeContext& c) {
  const WindowGeometry g = geometry(c);
  const Buffer& x = c.in(0);
  const bool column_major = c.attr_int("storage_order") != 0;
  auto init = [&](const Axes& i) {
    return seq({store(c.out(0), i, lowest(x->dtype)), store(c.out(1), i, Expr(-1))});
  };
  auto update = [&](const Axes& i, const Axes& r) {
    Expr inside;
    const Axes at = window_position(g, x, i, r, inside);
    Expr better =
        select(inside, logical_or(load(c.out(1), i) < Expr(0), load(x, at) > load(c.out(0), i)),
               bool_imm(false));
    return if_then(better, seq({store(c.out(0), i, load(x, at)),
                                store(c.out(1), i, flat_index(x->shape, at, column_major))}));
  };
  c.b.opaque_over(
      c.out(0)->shape,
      [&](const Axes& i) {
        return seq(
            {init(i), loop_nest(window_extents(g), [&](const Axes& r) { return update(i, r); })});
      },
      "max_pool");
}

void compute_sum_pool(ComputeContext& c) {
  const WindowGeometry g = geometry(c);
  const Buffer &x = c.in(0), &y = c.out();
  const DType acc = accumulator(x->dtype);
  Buffer sum = acc == x->dtype ? y : c.b.temp("sum", acc, y->shape, y->layout);
  c.b.reduce(
      sum, window_extents(g), Combiner::kSum,
      [&](const Axes& i, const Axes& r) {
        Expr inside;
        const Axes at = window_position(g, x, i, r, inside);
        return cast(acc, select(inside, load(x, at), constant(0, x->dtype)));
      },
      "sum_pool");
  if (sum != y)
    c.b.compute(y, [&](const Axes& i) { return cast(y->dtype, load(sum, i)); }, "round");
}

// --- max_unpool --------------------------------------------------------------------------------

// indices count in a tensor of the extents `from`; the result may be larger.
Status infer_max_unpool(InferContext& c) {
  auto dims = known_dims(c, 2), from = known_dims(c, 3);
  if (!dims || !from) return c.unsupported("the output shape is not known at compile time");
  if (static_cast<int>(dims->size()) != c.rank(0) || dims->size() != from->size() ||
      c.rank(1) != c.rank(0))
    return c.error("x is " + to_string(c.type(0)) + ", indices is " + to_string(c.type(1)) +
                   ", the output shape has " + std::to_string(dims->size()) + " elements");
  for (int d = 0; d < c.rank(0); ++d)
    if (surely_differ(c.dim(0, d), c.dim(1, d)))
      return c.error("x is " + to_string(c.type(0)) + ", indices is " + to_string(c.type(1)));
  c.set_output(0, c.type(0).dtype, *dims);
  return {};
}
void compute_max_unpool(ComputeContext& c) {
  const std::vector<Expr> from = *known_dims(c, 3);
  c.b.compute(c.out(), [&](const Axes&) { return constant(0, c.out()->dtype); }, "zero");
  c.b.opaque(loop_nest(c.in(0)->shape,
                       [&](const Axes& i) {
                         return with_value("place", load(c.in(1), i), [&](const Expr& place) {
                           const Axes at = unravel(place, from);
                           Expr inside = place >= Expr(0);
                           for (size_t d = 0; d < at.size(); ++d)
                             inside = logical_and(inside, at[d] < c.out()->shape[d]);
                           return if_then(inside, store(c.out(), at, load(c.in(0), i)));
                         });
                       }),
             "max_unpool");
}

// --- regions -----------------------------------------------------------------------------------

Status infer_roi_align(InferContext& c) {
  const auto &x = c.type(0), &rois = c.type(1);
  if (x.rank() != 4 || rois.rank() != 2 || as_int(rois.dims[1]).value_or(4) != 4 ||
      c.rank(2) != 1 || surely_differ(rois.dims[0], c.dim(2, 0)))
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois) +
                   ", batch indices are " + to_string(c.type(2)) +
                   ": expected [n, c, h, w], [r, 4] and [r]");
  if (!is_float(x.dtype) || rois.dtype != x.dtype)
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois));
  c.set_output(0, x.dtype,
               {rois.dims[0], x.dims[1], Expr(c.attr_int("output_height", 1)),
                Expr(c.attr_int("output_width", 1))});
  return {};
}

// One direction of a region: where its bins begin, how long they are, samples per bin.
struct RegionSide {
  Expr start, bin, samples;
};
RegionSide region_side(const ComputeContext& c, const Expr& roi, int direction, DType t) {
  const Expr scale = constant(c.attr_float("spatial_scale", 1), t),
             offset = constant(c.attr_int("half_pixel", 1) ? 0.5 : 0.0, t);
  auto edge = [&](int k) { return cast(t, load(c.in(1), {roi, Expr(k)})) * scale - offset; };
  Expr start = edge(1 - direction), length = edge(3 - direction) - start;
  if (!c.attr_int("half_pixel", 1)) length = max(length, constant(1, t));
  Expr bin = length / cast(t, c.out()->shape[static_cast<size_t>(2 + direction)]);
  const int64_t ratio = c.attr_int("sampling_ratio");
  return {start, bin, ratio > 0 ? Expr(ratio) : cast(DType::kInt64, unary(UnaryOp::kCeil, bin))};
}
// The neighbours of a sample along one direction, with their weights; outside x by more than one
// element: nothing.
struct Neighbours {
  Expr low, high, low_weight, high_weight, outside;
};
Neighbours neighbours(const Expr& position, const Expr& extent) {
  const DType t = position.dtype();
  const Expr last = extent - 1, one = constant(1, t);
  Expr outside = logical_or(position<constant(-1, t), position> cast(t, extent));
  Expr p = min(max(position, constant(0, t)), cast(t, last));
  Expr low = cast(DType::kInt64, p), part = p - cast(t, low);
  return {low, min(low + 1, last), one - part, part, outside};
}
// One sample: the sum of its weighted neighbours, or the largest of them.
Expr sample(const ComputeContext& c, const Expr& batch, const Expr& channel, const Neighbours& y,
            const Neighbours& x, bool largest, DType t) {
  Expr result;
  for (bool high_y : {false, true})
    for (bool high_x : {false, true}) {
      Expr weight =
          (high_y ? y.high_weight : y.low_weight) * (high_x ? x.high_weight : x.low_weight);
      Expr term = weight * cast(t, load(c.in(0), {batch, channel, high_y ? y.high : y.low,
                                                  high_x ? x.high : x.low}));
      result = !result ? term : largest ? max(result, term) : result + term;
    }
  return select(logical_or(y.outside, x.outside), constant(0, t), result);
}
void compute_roi_align(ComputeContext& c) {
  const DType t = accumulator(c.out()->dtype);
  const bool largest = c.attr_string("mode", "avg") == "max";
  c.b.opaque_over(
      c.out()->shape,
      [&](const Axes& i) {
        const RegionSide h = region_side(c, i[0], 0, t), w = region_side(c, i[0], 1, t);
        const Expr batch =
            wrapped_index(load(c.in(2), {within(i[0], c.dim(1, 0), c.dim(2, 0))}), c.dim(0, 0));
        Buffer sum = make_buffer("sum", t, {Expr(1)}, Scope::kLocal);
        const Axes only{Expr(0)};
        auto position = [&](const RegionSide& s, const Expr& bin, const Expr& k) {
          return s.start + cast(t, bin) * s.bin +
                 (cast(t, k) + constant(0.5, t)) * s.bin / cast(t, s.samples);
        };
        Stmt scan = with_value("rows", h.samples, [&](const Expr& rows) {
          return with_value("columns", w.samples, [&](const Expr& columns) {
            Stmt samples = loop_nest({rows, columns}, [&](const Axes& k) {
              Expr s = sample(c, batch, i[1], neighbours(position(h, i[2], k[0]), c.dim(0, 2)),
                              neighbours(position(w, i[3], k[1]), c.dim(0, 3)), largest, t);
              Expr first = logical_and(eq(k[0], Expr(0)), eq(k[1], Expr(0)));
              return store(
                  sum, only,
                  largest ? select(first, s, max(load(sum, only), s)) : load(sum, only) + s);
            });
            Expr total =
                largest ? load(sum, only) : load(sum, only) / cast(t, max(rows * columns, 1));
            return seq({store(sum, only, constant(0, t)), samples,
                        store(c.out(), i, cast(c.out()->dtype, total))});
          });
        });
        return allocate(sum, scan);
      },
      "roi_align");
}

// rois: rows of batch, x1, y1, x2, y2; the regions are rounded to whole elements.
Status infer_max_roi_pool(InferContext& c) {
  const auto &x = c.type(0), &rois = c.type(1);
  const auto pooled = c.attr_ints("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || as_int(rois.dims[1]).value_or(5) != 5 ||
      pooled.size() != 2 || rois.dtype != x.dtype)
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois) +
                   ": expected [n, c, h, w] and [r, 5]");
  c.set_output(0, x.dtype, {rois.dims[0], x.dims[1], Expr(pooled[0]), Expr(pooled[1])});
  return {};
}
void compute_max_roi_pool(ComputeContext& c) {
  const Buffer& x = c.in(0);
  const DType t = accumulator(x->dtype);
  const Expr scale = constant(c.attr_float("spatial_scale", 1), t);
  auto whole = [&](const Expr& v) { return cast(DType::kInt64, v); };
  struct Bin {
    Expr low, high;
  };
  auto bin = [&](const Axes& i, int direction) -> Bin {
    auto edge = [&](int k) {
      return whole(unary(UnaryOp::kFloor,
                         cast(t, load(c.in(1), {i[0], Expr(k)})) * scale + constant(0.5, t)));
    };
    const Expr start = edge(2 - direction), length = max(edge(4 - direction) - start + 1, 1),
               n = c.dim(0, 2 + direction);
    const Expr size = cast(t, length) / cast(t, c.out()->shape[static_cast<size_t>(2 + direction)]),
               k = i[static_cast<size_t>(2 + direction)];
    return {clamp(start + whole(unary(UnaryOp::kFloor, cast(t, k) * size)), 0, n),
            clamp(start + whole(unary(UnaryOp::kCeil, cast(t, k + 1) * size)), 0, n)};
  };
  c.b.opaque_over(
      c.out()->shape,
      [&](const Axes& i) {
        const Bin h = bin(i, 0), w = bin(i, 1);
        const Expr batch = wrapped_index(whole(load(c.in(1), {i[0], Expr(0)})), c.dim(0, 0));
        Stmt scan = loop_nest({h.high - h.low, w.high - w.low}, [&](const Axes& k) {
          return store(c.out(), i,
                       max(load(c.out(), i), load(x, {batch, i[1], h.low + k[0], w.low + k[1]})));
        });
        Expr empty = logical_or(h.high <= h.low, w.high <= w.low);
        return seq(
            {store(c.out(), i, select(empty, constant(0, x->dtype), lowest(x->dtype))), scan});
      },
      "max_roi_pool");
}

}  // namespace

const std::vector<OpDef>& pooling_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 7, 6}};
  static const Attributes window{{"kernel_shape", std::vector<int64_t>{3, 2}},
                                 {"pads", std::vector<int64_t>{1, 0, 1, 0}}};
  static const std::vector<OpDef> ops{
      {.name = "max_pool_indices",
       .summary = "largest element of each window, and its number in x",
       .operands = {{"x"}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back(
                 {"storage_order", AttributeKind::kInt, "1: numbers run down columns first"});
             return a;
           }(),
       .outputs = "y,indices",
       .infer_type = infer_max_pool_indices,
       .compute = compute_max_pool_indices,
       .example = {.inputs = {x4}, .attributes = window, .outputs = 2},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxPool.html"},
      {.name = "sum_pool",
       .summary = "sum of each window",
       .operands = {{"x"}},
       .attributes = kWindowAttributes,
       .fusion = FusionKind::kContraction,
       .infer_type = infer_pool,
       .compute = compute_sum_pool,
       .example = {.inputs = {x4}, .attributes = window},
       .source = "https://onnx.ai/onnx/operators/onnx__LpPool.html"},
      {.name = "max_unpool",
       .summary = "zeros with the elements of x at their numbers in a tensor of the extents `from`",
       .operands = {{"x"}, {"indices"}, {"shape"}, {"from"}},
       .infer_type = infer_max_unpool,
       .compute = compute_max_unpool,
       .example = {.inputs = {{DType::kFloat32, {1, 1, 1, 2}},
                              {DType::kInt64, {1, 1, 1, 2}},
                              {DType::kInt64, {4}},
                              {DType::kInt64, {4}}},
                   .values = {{}, {1, 6}, {1, 1, 3, 4}, {1, 1, 2, 4}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxUnpool.html"},
      {.name = "roi_align",
       .summary = "regions of x resampled to one size",
       .operands = {{"x"}, {"rois"}, {"batch"}},
       .attributes = {{"output_height", AttributeKind::kInt, "default 1"},
                      {"output_width", AttributeKind::kInt, "default 1"},
                      {"sampling_ratio", AttributeKind::kInt,
                       "samples per bin and direction; 0: as many as elements"},
                      {"spatial_scale", AttributeKind::kFloat, "of rois; default 1"},
                      {"mode", AttributeKind::kString, "avg or max"},
                      {"half_pixel", AttributeKind::kInt,
                       "rois count from the centres of elements; default 1"}},
       .infer_type = infer_roi_align,
       .compute = compute_roi_align,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 4}}, {DType::kInt64, {1}}},
                   .attributes = {{"output_height", int64_t{2}},
                                  {"output_width", int64_t{3}},
                                  {"sampling_ratio", int64_t{2}}},
                   .values = {{}, {0.5, 1, 4, 5}, {0}}},
       .source = "https://onnx.ai/onnx/operators/onnx__RoiAlign.html"},
      {.name = "max_roi_pool",
       .summary = "largest element of each bin of regions of x",
       .operands = {{"x"}, {"rois"}},
       .attributes = {{"pooled_shape", AttributeKind::kInts, "height and width of the result"},
                      {"spatial_scale", AttributeKind::kFloat, "of rois; default 1"}},
       .infer_type = infer_max_roi_pool,
       .compute = compute_max_roi_pool,
       .example = {.inputs = {x4, {DType::kFloat32, {1, 5}}},
                   .attributes = {{"pooled_shape", std::vector<int64_t>{2, 2}}},
                   .values = {{}, {0, 1, 0, 4, 5}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
