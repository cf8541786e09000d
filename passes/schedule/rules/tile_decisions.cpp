// The tile rule: what it decides.
#include <algorithm>

#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

std::vector<size_t> TileRule::reduce_by_stride() const {
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t r : reduce_) {
    int64_t stride = is_one(block_.axes[r].extent) ? INT64_MAX : 0;
    for (const BlockAccess& a : block_accesses(block_))
      if (!a.write && !s_.is_constant(a.buffer) && a.strides[r])
        stride = std::max(stride, stride_or_far(a, r));
    order.push_back({-stride, r});
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<size_t> result;
  for (auto& [stride, r] : order) result.push_back(r);
  return result;
}

void TileRule::decide_order() {
  const SumOrder* sums = s_.sum_order(name_);
  reduce_order_ = sums ? sums->axes : reduce_by_stride();
  if (sums || reduce_order_ == reduce_) return;
  if (s_.decide_which(loop("order"), {"by_stride", "as_declared"}, 0, bits_of_order(block_)) == 1)
    reduce_order_ = reduce_;
}

void TileRule::decide() {
  decide_order();
  decide_widths();
  // An operand that moves with both rows and columns is read anew for each result: fewer
  // accumulators do.
  bool shared = false;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const Expr& sj = a.strides[parallel_[j_]];
    shared |= sj && is_zero(sj);
  }
  if (shared && dot_)
    matrix_ = choose_matrix_tile(s_.machine(), left_, row_count_, columns_, depth_, row_spans());
  if (matrix_ && !s_.decide_whether(loop("matrix"), true, bits_of_order(block_))) matrix_.reset();
  if (matrix_) {
    tile_.rows = matrix_->all_rows();
    tile_.vectors = matrix_->column_tiles;
    s_.note(name_ + ": " + explain(*matrix_, as_int(row_extent_)));
  } else if (shared) {
    decide_blocks();
    decide_shared();
    decide_groups();
  } else {
    decide_apart();
  }
  if (matrix_ || !shared) blocks_.reset();
  if (dot_) s_.note(name_ + ": sums of " + std::to_string(dot_) + " products by one instruction");
  if (!outer_.empty() && outer_loops_ == 0 && !blocks_)
    columns_first_ = s_.decide_whether(loop("columns_first"),
                                       shared ? goes_by_columns() : keeps_columns(), Bits::kKept);
  if (columns_first_)
    s_.note(name_ + ": a panel of columns at a time, over all rows: " +
            (shared ? "the weights are larger than the cache and the rows are not"
                    : "its weights stay in registers, and the rows in the cache"));
}

void TileRule::decide_widths() {
  dot_ = terms_of_dot();
  const DType t = block_.body.as<Store>()->buffer->dtype;
  row_count_ = extent_or(row_extent_, kUnknownExtent);
  columns_ = extent_or(block_.axes[parallel_[j_]].extent, 2 * kUnknownExtent);
  lanes_ = dot_ && packed_lanes_ ? packed_lanes_ : lanes_for(s_.machine(), byte_size(t), columns_);
  if (dot_) return;  // operands are packed for vectors of that many
  lanes_ = s_.decide(loop("lanes"), powers_of_two(kFewestLanes, lanes_), lanes_, Bits::kKept);
}

// The analytic model (cost/tile_cost) picks rows by vectors; neighbours are offered to tuners with
// their estimated times.
void TileRule::decide_shared() {
  const int64_t inner = whole_span();
  // Of products alone: rows of windows are bound to pixels, and dot products have panels of their own.
  const auto longer = std::count_if(reduce_.begin(), reduce_.end(),
                                    [&](size_t r) { return !is_one(block_.axes[r].extent); });
  int64_t depth = inner == 0 && !dot_ && longer == 1 ? 1 : 0;
  for (size_t r : reduce_) depth *= extent_or(block_.axes[r].extent, 0);
  // Constants lie in panels that all sizes of a model's inputs share: their width is not to depend on the rows.
  const bool of_run_time = given_panels() > 0 && !blocks_ && !dot_;
  const TileSizes sizes{.rows = row_count_,
                        .columns = columns_,
                        .lanes = lanes_,
                        .within = inner,
                        .outer = outer_tiles(),
                        .depth = depth,
                        .block = blocks_ ? blocks_->terms : 0,
                        .row_bytes = row_bytes(),
                        .steps = steps_by_panels(),
                        .terms = of_run_time ? terms() : 0,
                        .panel_rows = rows_of_panels(),
                        .bytes = byte_size(block_.body.as<Store>()->buffer->dtype)};
  const TileChoice choice = choose_tile(s_.machine(), sizes);
  const double products = static_cast<double>(instances(block_));
  const auto pick = [&](const char* what, int64_t TileCost::*size, int64_t usual,
                        const std::vector<TileCost>& tiles) {
    std::vector<int64_t> values;
    std::vector<double> us;
    for (const TileCost& t : tiles) {
      values.push_back(t.*size);
      us.push_back(microseconds(s_.machine(), t, products));
    }
    const int64_t n = s_.decide(loop(what), values, usual, Bits::kKept, us);
    return *std::find_if(tiles.begin(), tiles.end(),
                         [&](const TileCost& t) { return t.*size == n; });
  };
  const auto take = [&](const TileCost& tile) {
    tile_ = tile;
    TileChoice taken = choice;
    if (tile.rows != choice.best.rows || tile.vectors != choice.best.vectors)
      taken = {.best = tile, .next = choice.best};
    s_.note(name_ + ": " + explain(taken, lanes_, s_.machine().vector_registers));
  };
  if (choice.best.score == 0) return take(choice.best);  // no tile fits: one of one
  const std::vector<TileCost> tiles = best_tiles(s_.machine(), sizes);
  // Rows that lie in panels: as many as these have, where that is about as good.
  constexpr double kAsGood = 0.97;
  const auto whole = [&](const std::vector<TileCost>& of, const TileCost& usual) {
    TileCost found = usual;
    for (const TileCost& t : of)
      if (t.fits && t.rows == sizes.panel_rows && t.score > kAsGood * usual.score &&
          (found.rows != sizes.panel_rows || t.score > found.score))
        found = t;
    return found;
  };
  const TileCost given = tile_with(s_.machine(), sizes, given_panels()),
                 usual = given_panels() ? given : whole(tiles, given),
                 best = pick("vectors", &TileCost::vectors, usual.vectors, tiles);
  const std::vector<TileCost> others = tiles_of(s_.machine(), sizes, best.vectors);
  const int64_t rows = whole(others, best.vectors == choice.best.vectors ? choice.best : best).rows;
  take(pick("rows", &TileCost::rows, rows, others));
}

// No reuse (depthwise): a few independent accumulators hide the latency, more bring nothing.
void TileRule::decide_apart() {
  const int64_t inner = whole_span();
  const int64_t vectors = (columns_ + lanes_ - 1) / lanes_;
  slides_ = widens_again() && s_.decide_whether(loop("slides"), true, Bits::kKept);
  const int64_t usual_vectors = slides_ ? 1
                                : vectors % 2 != 0 && vectors % 3 == 0
                                    ? 3
                                    : std::min<int64_t>(2, vectors);
  tile_.vectors =
      s_.decide(loop("vectors"), with({1, 2, 3, 4}, usual_vectors), usual_vectors, Bits::kKept);
  const int64_t most = std::min<int64_t>(row_count_, s_.machine().vector_registers < 32 ? 4 : 8);
  int64_t usual_rows = 1;
  std::vector<int64_t> values;
  for (int64_t r = 1; r <= most; ++r) {
    values.push_back(r);
    if (inner ? inner % r == 0 : row_count_ % r == 0 || r == 4) usual_rows = r;
  }
  if (values.empty()) values = {1};
  tile_.rows = s_.decide(loop("rows"), values, usual_rows, Bits::kKept);
  s_.note(name_ + ": " + std::to_string(tile_.rows) + " rows x " + std::to_string(tile_.vectors) +
          " vectors of " + std::to_string(lanes_) +
          " lanes; no operand is shared by the results, so that more sums bring nothing");
}

}  // namespace tilewright::passes
