// Pooling over regions of an image that are data.
//
// roi_align (He et al., Mask R-CNN, 2017): bilinear samples of a region, averaged or maximised by
// bins. For means the sum is separable: tables of weights per row and per column of a region are
// computed once and shared by all channels, which replaces four loads per sample by a weighted sum
// of rows.
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// --- roi_align ---------------------------------------------------------------------------------

Status infer_roi_align(InferContext& c) {
  const auto &x = c.type(0), &rois = c.type(1);
  if (x.rank() != 4 || rois.rank() != 2 || as_int(rois.dims[1]).value_or(4) != 4 ||
      c.rank(2) != 1 || !c.agree(rois.dims[0], c.dim(2, 0)))
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
  // Nobody means a region that is so much larger than any picture, or infinite.
  constexpr int64_t kMostSamples = 8192;
  const Expr by_size = cast(DType::kInt64, unary(UnaryOp::kCeil, bin));
  return {start, bin, ratio > 0 ? Expr(ratio) : min(by_size, kMostSamples)};
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
// Sample k of a bin.
Expr sample_position(const RegionSide& s, const Expr& bin, const Expr& k) {
  const DType t = s.start.dtype();
  return s.start + cast(t, bin) * s.bin +
         (cast(t, k) + constant(0.5, t)) * s.bin / cast(t, s.samples);
}
Expr batch_of(const ComputeContext& c, const Expr& roi) {
  return wrapped_index(load(c.in(2), {within(roi, c.dim(1, 0), c.dim(2, 0))}), c.dim(0, 0));
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
  c.b.opaque_over(
      c.out()->shape,
      [&](const Axes& i) {
        const RegionSide h = region_side(c, i[0], 0, t), w = region_side(c, i[0], 1, t);
        const Expr batch = batch_of(c, i[0]);
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

// What all channels read alike along one direction of the regions: bin b of region r sums up
// count[r, b] elements, at place[r, b, ...] with weights. The samples of a bin share elements.
struct BinTables {
  Buffer count, place, weight;
};
struct MeanTables {
  BinTables side[2];
  Buffer columns;  // [r, 2]: first column that any bin reads, and the one behind the last
};

// Adds an element to bin `at`, to the last two of which it may belong.
Stmt add_element(const BinTables& t, const Axes& at, const Expr& place, const Expr& weight) {
  auto element = [&](const Expr& k) { return Axes{at[0], at[1], k}; };
  const Expr count = load(t.count, at);
  return with_value("count", count, [&](const Expr& n) {
    auto same = [&](int64_t back) {
      return select(n >= Expr(back), eq(load(t.place, element(n - back)), place), bool_imm(false));
    };
    auto add_to = [&](int64_t back) {
      const Axes k = element(n - back);
      return store(t.weight, k, load(t.weight, k) + weight);
    };
    Stmt append = seq({store(t.place, element(n), place), store(t.weight, element(n), weight),
                       store(t.count, at, n + 1)});
    return if_then(same(1), add_to(1), if_then(same(2), add_to(2), append));
  });
}
// The elements of bin `at` in a direction, each weighted `factor` times.
Stmt fill_bin(const ComputeContext& c, const BinTables& t, const Axes& at, int direction,
              const RegionSide& s, const Expr& factor) {
  Stmt samples = loop_nest({s.samples}, [&](const Axes& k) {
    const Neighbours n = neighbours(sample_position(s, at[1], k[0]), c.dim(0, 2 + direction));
    return if_then(logical_not(n.outside),
                   seq({add_element(t, at, n.low, n.low_weight * factor),
                        add_element(t, at, n.high, n.high_weight * factor)}));
  });
  return seq({store(t.count, at, Expr(0)), samples});
}
MeanTables fill_means(ComputeContext& c, DType t) {
  const Expr regions = c.out()->shape[0];
  const int64_t ratio = c.attr_int("sampling_ratio");
  MeanTables m;
  for (int d : {0, 1}) {
    // As many samples as elements: each element at most once.
    const Expr bins = c.out()->shape[static_cast<size_t>(2 + d)],
               most = ratio > 0 ? Expr(2 * ratio) : c.dim(0, 2 + d) + 1;
    m.side[d] = {c.b.temp("count", DType::kInt64, {regions, bins}),
                 c.b.temp("place", DType::kInt64, {regions, bins, most}),
                 c.b.temp("weight", t, {regions, bins, most})};
  }
  m.columns = c.b.temp("columns", DType::kInt64, {regions, Expr(2)});
  c.b.opaque_over(
      {regions},
      [&](const Axes& i) {
        const RegionSide h = region_side(c, i[0], 0, t), w = region_side(c, i[0], 1, t);
        const Expr one = constant(1, t), samples = cast(t, max(h.samples * w.samples, 1));
        const BinTables& x = m.side[1];
        const Axes first{i[0], Expr(0)}, end{i[0], Expr(1)};
        Stmt rows = loop_nest({c.out()->shape[2]}, [&](const Axes& b) {
          return fill_bin(c, m.side[0], {i[0], b[0]}, 0, h, one);
        });
        Stmt columns = loop_nest({c.out()->shape[3]}, [&](const Axes& b) {
          const Axes at{i[0], b[0]};
          Stmt span = loop_nest({load(x.count, at)}, [&](const Axes& k) {
            const Expr place = load(x.place, {i[0], b[0], k[0]});
            return seq({store(m.columns, first, min(load(m.columns, first), place)),
                        store(m.columns, end, max(load(m.columns, end), place + 1))});
          });
          return seq({fill_bin(c, x, at, 1, w, one / samples), span});
        });
        return seq(
            {store(m.columns, first, c.dim(0, 3)), store(m.columns, end, Expr(0)), rows, columns});
      },
      "regions");
  return m;
}

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
  const MeanTables m = fill_means(c, t);
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
        Stmt all = with_value("batch", batch_of(c, i[0]), [&](const Expr& batch) {
          return with_value("first", load(m.columns, {i[0], Expr(0)}), [&](const Expr& first) {
            return with_value("end", load(m.columns, {i[0], Expr(1)}),
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

// --- max_roi_pool ------------------------------------------------------------------------------

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
        const Expr batch = clamped_index(whole(load(c.in(1), {i[0], Expr(0)})), c.dim(0, 0));
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

const std::vector<OpDef>& region_ops() {
  static const TensorType x4{DType::kFloat32, {1, 2, 7, 6}};
  static const std::vector<OpDef> ops{
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
       .index_operand = 2,
       .indexed_dims = [](const NodeView& c) { return std::vector<IndexedDim>{{0, c.dim(0, 0)}}; },
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
