// Regions of an image resampled to one size.
//
// roi_align (He et al., Mask R-CNN, 2017): bilinear samples of a region, averaged or maximised by
// bins. For means the sum is separable: tables of weights per row and per column of a region are
// computed once and shared by all channels, which replaces four loads per sample by a weighted sum
// of rows.
#include "ir/formula/gradient.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/region_tables.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

constexpr const char* kExtents = "extents";

Status infer_roi_align(InferContext& c) {
  const auto &x = c.type(0), &rois = c.type(1);
  if (x.rank() != 4 || rois.rank() != 2 || !c.agree(rois.dims[1], 4) || c.rank(2) != 1 ||
      !c.agree(rois.dims[0], c.dim(2, 0)))
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois) +
                   ", batch indices are " + to_string(c.type(2)) +
                   ": expected [n, c, h, w], [r, 4] and [r]");
  if (!is_float(x.dtype) || rois.dtype != x.dtype)
    return c.error("x is " + to_string(x) + ", rois is " + to_string(rois));
  for (size_t d : {2, 3})
    if (!c.at_most(1, x.dims[d], "there must be something to sample"))
      return c.error("x is " + to_string(x) + ": nothing to sample");
  c.set_output(0, x.dtype,
               {rois.dims[0], x.dims[1], Expr(c.attr_int("output_height", 1)),
                Expr(c.attr_int("output_width", 1))});
  return {};
}

RegionCall region_call(const ComputeContext& c) {
  return {c, c.in(0)->shape, c.out()->shape, c.in(1), c.in(2)};
}

// --- the largest of samples

// One sample: the largest of its weighted neighbours.
Expr sample(const ComputeContext& c, const Expr& batch, const Expr& channel, const Neighbours& y,
            const Neighbours& x, DType t) {
  Expr result;
  for (bool high_y : {false, true})
    for (bool high_x : {false, true}) {
      Expr weight =
          (high_y ? y.high_weight : y.low_weight) * (high_x ? x.high_weight : x.low_weight);
      Expr term = weight * cast(t, load(c.in(0), {batch, channel, high_y ? y.high : y.low,
                                                  high_x ? x.high : x.low}));
      result = result ? max(result, term) : term;
    }
  return select(logical_or(y.outside, x.outside), constant(0, t), result);
}
void compute_largest_samples(ComputeContext& c, DType t) {
  const RegionCall call = region_call(c);
  c.b.opaque_over(
      c.out()->shape,
      [&](const Axes& i) {
        const RegionSide h = region_side(call, i[0], 0, t), w = region_side(call, i[0], 1, t);
        const Expr batch = batch_of(call, i[0]);
        Buffer found = make_buffer("found", t, {Expr(1)}, Scope::kLocal);
        const Axes only{Expr(0)};
        Stmt scan = with_value("rows", h.samples, [&](const Expr& rows) {
          return with_value("columns", w.samples, [&](const Expr& columns) {
            Stmt samples = loop_nest({rows, columns}, [&](const Axes& k) {
              Expr s =
                  sample(c, batch, i[1], neighbours(sample_position(h, i[2], k[0]), c.dim(0, 2)),
                         neighbours(sample_position(w, i[3], k[1]), c.dim(0, 3)), t);
              Expr first = logical_and(eq(k[0], Expr(0)), eq(k[1], Expr(0)));
              return store(found, only, select(first, s, max(load(found, only), s)));
            });
            return seq({store(found, only, constant(0, t)), samples,
                        store(c.out(), i, cast(c.out()->dtype, load(found, only)))});
          });
        });
        return allocate(found, scan);
      },
      "roi_align");
}

// --- the mean of samples: weighted sums of rows, then of columns

// row[k] = weighted sum of the rows of bin b at column first + k.
Stmt sum_rows(const ComputeContext& c, const BinTables& t, const Buffer& row, const Axes& channel,
              const Axes& bin, const Expr& first, const Expr& end) {
  Buffer sum = make_buffer("sum", t.weight->dtype, {Expr(1)}, Scope::kLocal);
  const Axes only{Expr(0)};
  return loop_nest({end - first}, [&](const Axes& column) {
    Stmt add = loop_nest({load(t.count, bin)}, [&](const Axes& k) {
      const Axes element{bin[0], bin[1], k[0]};
      const Expr x =
          load(c.in(0), {channel[0], channel[1], load(t.place, element), first + column[0]});
      return store(sum, only, load(sum, only) + load(t.weight, element) * cast(sum->dtype, x));
    });
    return allocate(sum, seq({store(sum, only, constant(0, sum->dtype)), add,
                              store(row, column, load(sum, only))}));
  });
}
// Results of row bin i[2] from its sums of rows.
Stmt sum_columns(const ComputeContext& c, const BinTables& t, const Buffer& row, const Axes& i,
                 const Expr& first) {
  Buffer sum = make_buffer("total", t.weight->dtype, {Expr(1)}, Scope::kLocal);
  const Axes only{Expr(0)};
  return loop_nest({c.out()->shape[3]}, [&](const Axes& b) {
    Stmt add = loop_nest({load(t.count, {i[0], b[0]})}, [&](const Axes& k) {
      const Axes element{i[0], b[0], k[0]};
      return store(
          sum, only,
          load(sum, only) + load(t.weight, element) * load(row, {load(t.place, element) - first}));
    });
    return allocate(
        sum,
        seq({store(sum, only, constant(0, sum->dtype)), add,
             store(c.out(), {i[0], i[1], i[2], b[0]}, cast(c.out()->dtype, load(sum, only)))}));
  });
}
void compute_mean_samples(ComputeContext& c, DType t) {
  const RegionCall call = region_call(c);
  const MeanTables m = fill_means(call, t);
  c.b.opaque_over(
      {c.out()->shape[0], c.out()->shape[1]},
      [&](const Axes& i) {
        Buffer row = make_buffer("row", t, {c.dim(0, 3)}, Scope::kWorkspace);
        auto rows = [&](const Expr& batch, const Expr& first, const Expr& end) {
          return loop_nest({c.out()->shape[2]}, [&](const Axes& b) {
            return seq({sum_rows(c, m.side[0], row, {batch, i[1]}, {i[0], b[0]}, first, end),
                        sum_columns(c, m.side[1], row, {i[0], i[1], b[0]}, first)});
          });
        };
        const auto column = [&](int64_t end) {
          return clamp(load(m.columns, {i[0], Expr(end)}), 0, c.dim(0, 3));
        };
        Stmt all = with_value("batch", batch_of(call, i[0]), [&](const Expr& batch) {
          return with_value("first", column(0), [&](const Expr& first) {
            return with_value("end", column(1),
                              [&](const Expr& end) { return rows(batch, first, end); });
          });
        });
        return allocate(row, all);
      },
      "roi_align");
}
void compute_roi_align(ComputeContext& c) {
  const DType t = accumulator(c.out()->dtype);
  if (c.attr_string("mode", "avg") == "max") return compute_largest_samples(c, t);
  compute_mean_samples(c, t);
}

// --- the gradient by x -------------------------------------------------------------------------

Status infer_roi_align_gradient(InferContext& c) {
  const auto extents = c.attr_extents(kExtents);
  const auto &dy = c.type(0), &rois = c.type(1);
  if (!extents || extents->size() != 4 || dy.rank() != 4 || rois.rank() != 2 || c.rank(2) != 1 ||
      !c.agree((*extents)[1], dy.dims[1]) || !c.agree(rois.dims[0], dy.dims[0]) ||
      !c.agree(c.dim(2, 0), dy.dims[0]) || as_int(rois.dims[1]).value_or(4) != 4)
    return c.error("dy is " + to_string(dy) + ", rois is " + to_string(rois) +
                   ", batch indices are " + to_string(c.type(2)) +
                   ": expected [r, c, oh, ow], [r, 4], [r], and extents of [n, c, h, w]");
  c.set_output(0, dy.dtype, *extents);
  return {};
}
// Each bin gives the elements that it is the mean of their parts: channels side by side, the regions,
// which overlap, one after the other.
void compute_roi_align_gradient(ComputeContext& c) {
  const DType t = accumulator(c.out()->dtype);
  const Buffer &dy = c.in(0),
               dx = t == c.out()->dtype ? c.out() : c.b.temp("dx", t, c.out()->shape);
  const RegionCall call{c, dx->shape, dy->shape, c.in(1), c.in(2)};
  const MeanTables m = fill_means(call, t);
  c.b.compute(dx, [&](const Axes&) { return constant(0, t); }, "zero");
  const auto elements = [&](int direction, const Expr& region, const Expr& bin,
                            const std::function<Stmt(const Expr&, const Expr&)>& body) {
    const BinTables& bins = m.side[direction];
    return loop_nest({load(bins.count, {region, bin})}, [&](const Axes& k) {
      const Axes at{region, bin, k[0]};
      return body(load(bins.place, at), load(bins.weight, at));
    });
  };
  c.b.opaque_over(
      {dx->shape[1]},
      [&](const Axes& channel) {
        return loop_nest({dy->shape[0], dy->shape[2], dy->shape[3]}, [&](const Axes& r) {
          return with_value("batch", batch_of(call, r[0]), [&](const Expr& batch) {
            const Expr g = cast(t, load(dy, {r[0], channel[0], r[1], r[2]}));
            return with_value("g", g, [&](const Expr& whole) {
              return elements(0, r[0], r[1], [&](const Expr& row, const Expr& by_row) {
                return elements(1, r[0], r[2], [&](const Expr& column, const Expr& by_column) {
                  const Axes at{batch, channel[0], row, column};
                  return store(dx, at, load(dx, at) + by_row * by_column * whole);
                });
              });
            });
          });
        });
      },
      "roi_align_gradient");
  if (dx != c.out())
    c.b.compute(c.out(), [&](const Axes& i) { return cast(c.out()->dtype, load(dx, i)); }, "round");
}
void gradient_of_roi_align(GradientContext& c) {
  if (c.wants(1)) c.fail("has no gradient by its regions");
  if (c.view().attr_string("mode", "avg") == "max") c.fail("has no gradient in mode 'max'");
  Attributes a = c.view().node().attributes;
  a.erase("mode");
  for (const char* extent : {"output_height", "output_width"}) a.erase(extent);
  a[kExtents] = Extents{c.type(c.in(0).id).dims};
  c.add(0, c.dy().make("roi_align_gradient", {c.dy().id, c.in(1).id, c.in(2).id}, std::move(a)));
}

}  // namespace

const std::vector<OpDef>& roi_align_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 7, 6}}, roi{DType::kFloat32, {1, 4}},
      batch{DType::kInt64, {1}};
  static const std::vector<AttributeDef> sampled{
      {"sampling_ratio", AttributeKind::kInt,
       "samples per bin and direction; 0: as many as elements"},
      {"spatial_scale", AttributeKind::kFloat, "of rois; default 1"},
      {"half_pixel", AttributeKind::kInt, "rois count from the centres of elements; default 1"}};
  static const std::vector<OpDef> ops{
      {.name = "roi_align",
       .summary = "regions of x resampled to one size",
       .operands = {{"x"}, {"rois"}, {"batch"}},
       .attributes =
           [] {
             auto a = sampled;
             a.push_back({"output_height", AttributeKind::kInt, "default 1"});
             a.push_back({"output_width", AttributeKind::kInt, "default 1"});
             a.push_back({"mode", AttributeKind::kString, "avg or max"});
             return a;
           }(),
       .infer_type = infer_roi_align,
       .compute = compute_roi_align,
       .gradient = gradient_of_roi_align,
       .index_operand = 2,
       .indexed_dims = [](const NodeView& c) { return std::vector<IndexedDim>{{0, c.dim(0, 0)}}; },
       .example = {.inputs = {x4, roi, batch},
                   .attributes = {{"output_height", int64_t{2}},
                                  {"output_width", int64_t{3}},
                                  {"sampling_ratio", int64_t{2}}},
                   .values = {{}, {0.5, 1, 4, 5}, {0}}},
       .source = "https://onnx.ai/onnx/operators/onnx__RoiAlign.html"},
      {.name = "roi_align_gradient",
       .summary = "to each element of x its part of dy: the adjoint of roi_align's means",
       .operands = {{"dy"}, {"rois"}, {"batch"}},
       .attributes =
           [] {
             auto a = sampled;
             a.push_back({kExtents, AttributeKind::kExtents, "of x"});
             return a;
           }(),
       .infer_type = infer_roi_align_gradient,
       .compute = compute_roi_align_gradient,
       .index_operand = 2,
       .indexed_dims =
           [](const NodeView& c) {
             return std::vector<IndexedDim>{{0, (*c.attr_extents(kExtents))[0]}};
           },
       .example = {.inputs = {{DType::kFloat32, {1, 2, 2, 3}}, roi, batch},
                   .attributes = {{kExtents, Extents{{Expr(1), Expr(2), Expr(7), Expr(6)}}},
                                  {"sampling_ratio", int64_t{2}}},
                   .values = {{}, {0.5, 1, 4, 5}, {0}}},
       .source = "Griewank and Walther, Evaluating Derivatives, 2008"},
  };
  return ops;
}

}  // namespace tilewright::ir
