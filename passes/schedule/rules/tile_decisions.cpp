// The tile rule: what it decides.
#include <algorithm>

#include "passes/cost/cache_room.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/share_out.h"
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
    decide_shared();
  } else {
    decide_apart();
  }
  if (dot_) s_.note(name_ + ": sums of " + std::to_string(dot_) + " products by one instruction");
  if (!outer_.empty() && outer_loops_ == 0)
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
  const int64_t inner =
      rows_.size() > 1 ? extent_or(block_.axes[parallel_[rows_[0]]].extent, 1) : 0;
  // Of products alone: rows of windows are bound to pixels, and dot products have panels of their own.
  const auto longer = std::count_if(reduce_.begin(), reduce_.end(),
                                    [&](size_t r) { return !is_one(block_.axes[r].extent); });
  int64_t depth = inner == 0 && !dot_ && longer == 1 ? 1 : 0;
  for (size_t r : reduce_) depth *= extent_or(block_.axes[r].extent, 0);
  const TileSizes sizes{.rows = row_count_,
                        .columns = columns_,
                        .lanes = lanes_,
                        .within = inner,
                        .outer = outer_tiles(),
                        .depth = depth,
                        .row_bytes = row_bytes(),
                        .steps = steps_by_lines(),
                        .bytes = byte_size(block_.body.as<Store>()->buffer->dtype)};
  const TileChoice choice = choose_tile(s_.machine(), sizes);
  s_.note(name_ + ": " + explain(choice, lanes_, s_.machine().vector_registers));
  const double products = static_cast<double>(instances(block_));
  const auto pick = [&](const char* what, int64_t TileCost::* size, int64_t usual,
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
  if (choice.best.score == 0) {  // no tile fits: one of one
    tile_ = choice.best;
    return;
  }
  const std::vector<TileCost> tiles = best_tiles(s_.machine(), sizes);
  int64_t vectors = choice.best.vectors;
  for (const TileCost& t : tiles)
    if (t.vectors * lanes_ == given_panels()) vectors = t.vectors;
  const TileCost best = pick("vectors", &TileCost::vectors, vectors, tiles);
  tile_ = pick("rows", &TileCost::rows,
               best.vectors == choice.best.vectors ? choice.best.rows : best.rows,
               tiles_of(s_.machine(), sizes, best.vectors));
}

// No reuse (depthwise): a few independent accumulators hide the latency, more bring nothing.
void TileRule::decide_apart() {
  const int64_t inner =
      rows_.size() > 1 ? extent_or(block_.axes[parallel_[rows_[0]]].extent, 1) : 0;
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

int64_t TileRule::width_of_panels(const BlockAccess& a) const {
  const Layout& layout = a.buffer->layout;
  if (a.write || layout.size() < 2 || layout.back().modulus == 0) return 0;
  const auto dim = static_cast<size_t>(layout.back().dim);
  return a.indices[dim].same_as(block_.axes[parallel_[j_]].var) ? layout.back().modulus : 0;
}

int64_t TileRule::given_panels() const {
  for (const BlockAccess& a : block_accesses(block_))
    if (const int64_t width = width_of_panels(a)) return width;
  return 0;
}

int64_t TileRule::row_bytes() const {
  if (rows_.empty()) return 0;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const auto by_row = a.stride(parallel_[rows_[0]]), by_column = a.stride(parallel_[j_]);
    if (by_row && by_column == 0 && *by_row != 0)
      return std::abs(*by_row) * byte_size(a.buffer->dtype);
  }
  return 0;
}

// Steps of the reduction, where rows lie in panels: each reads a line of one.
int64_t TileRule::steps_by_lines() const {
  bool panels = false;
  for (const BlockAccess& a : block_accesses(block_))
    panels |= !a.write && a.stride(parallel_[j_]) == 0 && !a.buffer->layout.empty() &&
              a.buffer->layout.back().modulus != 0;
  int64_t steps = panels ? 1 : 0;
  for (size_t r : reduce_)
    steps = std::min<int64_t>(steps * extent_or(block_.axes[r].extent, 0), int64_t{1} << 30);
  return steps;
}

bool TileRule::widens_again() const {
  if (rows_.empty() || reduce_.empty()) return false;
  const size_t window = reduce_in_order().back(), row = parallel_[rows_[0]];
  const Buffer& sums = block_.body.as<Store>()->buffer;
  bool found = false;
  for (const BlockAccess& a : block_accesses(block_))
    found |= !a.write && a.buffer != sums && !s_.is_constant(a.buffer) &&
             byte_size(a.buffer->dtype) < byte_size(sums->dtype) && a.strides[row] &&
             a.strides[window] && can_prove_equal(a.strides[row], a.strides[window]);
  return found && extent_or(block_.axes[window].extent, kUnknownExtent) <= kMostWindow;
}

std::vector<int64_t> TileRule::row_spans() const {
  std::vector<int64_t> spans;
  for (size_t k = 0; k + 1 < rows_.size(); ++k)
    spans.push_back((k ? spans.back() : 1) * extent_or(block_.axes[parallel_[rows_[k]]].extent, 1));
  return spans;
}

int64_t TileRule::outer_tiles() const {
  if (outer_loops_ > 0 || !fork_cost(s_.machine(), work_of(s_, name_)).pays()) return 0;
  int64_t n = 1;
  for (size_t k : outer_) n *= extent_with(block_.axes[parallel_[k]].extent, 1);
  return n;
}

// Of panels known at the run alone those that one pass over the rows takes, as there may be several products.
int64_t TileRule::bytes_of_panels(const BlockAccess& a) const {
  int64_t bytes = byte_size(a.buffer->dtype) * columns_;
  for (size_t r : reduce_)
    bytes = std::min<int64_t>(bytes * extent_or(block_.axes[r].extent, 1), int64_t{1} << 40);
  return bytes;
}

// With constants, and without.
TileRule::OperandBytes TileRule::operand_bytes() const {
  int64_t weights = 0, rest = 0;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    if (!s_.is_constant(a.buffer) && width_of_panels(a) > 0) {
      weights += bytes_of_panels(a);
      continue;
    }
    int64_t bytes = byte_size(a.buffer->dtype);
    for (const Expr& e : a.buffer->shape)
      bytes = std::min<int64_t>(bytes * std::max<int64_t>(extent_or(e, int64_t{1} << 20), 1),
                                int64_t{1} << 40);
    (s_.is_constant(a.buffer) ? weights : rest) += bytes;
  }
  return {weights, rest};
}

int64_t TileRule::panels() const {
  return extent_or(block_.axes[parallel_[j_]].extent, 1) / (tile_.vectors * lanes_);
}

bool TileRule::goes_by_columns() const {
  const OperandBytes bytes = operand_bytes();
  return bytes.weights > bytes_of_a_panel(s_.machine()) &&
         bytes.rest < bytes_of_a_panel(s_.machine()) &&
         panels() >= 2 * std::max(s_.machine().threads, 1);
}

// Without an operand that is shared, the weights of a panel are as many as the sums that they go
// into, and reading them anew for each row of results costs as much as the rows. All rows are passed
// over for each panel, and should come from the second cache.
bool TileRule::keeps_columns() const {
  return panels() >= 2 && operand_bytes().rest <= s_.machine().l2_bytes;
}

}  // namespace tilewright::passes
