#include "ir/ops/region_tables.h"

#include "ir/loops/simplify.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {

RegionSide region_side(const RegionCall& c, const Expr& roi, int direction, DType t) {
  const Expr scale = constant(c.node.attr_float("spatial_scale", 1), t),
             offset = constant(c.node.attr_int("half_pixel", 1) ? 0.5 : 0.0, t);
  auto edge = [&](int k) { return cast(t, load(c.rois, {roi, Expr(k)})) * scale - offset; };
  Expr start = edge(1 - direction), length = edge(3 - direction) - start;
  if (!c.node.attr_int("half_pixel", 1)) length = max(length, constant(1, t));
  Expr bin = length / cast(t, c.y[static_cast<size_t>(2 + direction)]);
  const int64_t ratio = c.node.attr_int("sampling_ratio");
  // A region of more than four times the extent of the picture, or an infinite one, takes no more samples than that:
  // their number would be a matter of the operand's elements alone.
  const auto d = static_cast<size_t>(2 + direction);
  const Expr most = simplify(4 * ceildiv(c.x[d], c.y[d]) + 64);
  const Expr by_size = cast(DType::kInt64, unary(UnaryOp::kCeil, bin));
  return {start, bin, ratio > 0 ? Expr(ratio) : min(by_size, most)};
}
Neighbours neighbours(const Expr& position, const Expr& extent) {
  const DType t = position.dtype();
  const Expr last = extent - 1, one = constant(1, t);
  Expr outside = logical_or(position<constant(-1, t), position> cast(t, extent));
  Expr p = min(max(position, constant(0, t)), cast(t, last));
  const Expr low = clamp(cast(DType::kInt64, p), 0, last), part = p - cast(t, low);
  return {low, min(low + 1, last), one - part, part, outside};
}
// Sample k of a bin.
Expr sample_position(const RegionSide& s, const Expr& bin, const Expr& k) {
  const DType t = s.start.dtype();
  return s.start + cast(t, bin) * s.bin +
         (cast(t, k) + constant(0.5, t)) * s.bin / cast(t, s.samples);
}
Expr batch_of(const RegionCall& c, const Expr& roi) {
  return wrapped_index(load(c.batch, {within(roi, c.rois->shape[0], c.batch->shape[0])}), c.x[0]);
}

namespace {

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
Stmt fill_bin(const RegionCall& c, const BinTables& t, const Axes& at, int direction,
              const RegionSide& s, const Expr& factor) {
  Stmt samples = loop_nest({s.samples}, [&](const Axes& k) {
    const Neighbours n =
        neighbours(sample_position(s, at[1], k[0]), c.x[2 + static_cast<size_t>(direction)]);
    return if_then(logical_not(n.outside),
                   seq({add_element(t, at, n.low, n.low_weight * factor),
                        add_element(t, at, n.high, n.high_weight * factor)}));
  });
  return seq({store(t.count, at, Expr(0)), samples});
}

}  // namespace

MeanTables fill_means(const RegionCall& c, DType t) {
  const Expr regions = c.y[0];
  const int64_t ratio = c.node.attr_int("sampling_ratio");
  MeanTables m;
  for (int d : {0, 1}) {
    // As many samples as elements: each element at most once.
    const Expr bins = c.y[static_cast<size_t>(2 + d)],
               most = ratio > 0 ? Expr(2 * ratio) : c.x[2 + static_cast<size_t>(d)] + 1;
    m.side[d] = {c.node.b.temp("count", DType::kInt64, {regions, bins}),
                 c.node.b.temp("place", DType::kInt64, {regions, bins, most}),
                 c.node.b.temp("weight", t, {regions, bins, most})};
  }
  m.columns = c.node.b.temp("columns", DType::kInt64, {regions, Expr(2)});
  c.node.b.opaque_over(
      {regions},
      [&](const Axes& i) {
        const RegionSide h = region_side(c, i[0], 0, t), w = region_side(c, i[0], 1, t);
        const Expr one = constant(1, t), samples = cast(t, max(h.samples * w.samples, 1));
        const BinTables& x = m.side[1];
        const Axes first{i[0], Expr(0)}, end{i[0], Expr(1)};
        Stmt rows = loop_nest({c.y[2]}, [&](const Axes& b) {
          return fill_bin(c, m.side[0], {i[0], b[0]}, 0, h, one);
        });
        Stmt columns = loop_nest({c.y[3]}, [&](const Axes& b) {
          const Axes at{i[0], b[0]};
          Stmt span = loop_nest({load(x.count, at)}, [&](const Axes& k) {
            const Expr place = load(x.place, {i[0], b[0], k[0]});
            return seq({store(m.columns, first, min(load(m.columns, first), place)),
                        store(m.columns, end, max(load(m.columns, end), place + 1))});
          });
          return seq({fill_bin(c, x, at, 1, w, one / samples), span});
        });
        return seq(
            {store(m.columns, first, c.x[3]), store(m.columns, end, Expr(0)), rows, columns});
      },
      "regions");
  return m;
}

}  // namespace tilewright::ir
