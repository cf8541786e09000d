// The tile rule: which axes are rows and columns of the tile, and its size.
#include <algorithm>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rows_of_tiles.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Channels in groups, whose axis is divided in the index of a load: groups of `size`, read `apart`
// from each other. `shared`: all results of a group read the same channels, over which they add.
struct Groups {
  int64_t size = 0, apart = 0;  // 0: there are none
  bool shared = false;
};
Groups groups_of(const Block& b, const BlockAxis& axis) {
  Groups g;
  for_each_expr(b.body, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    if (!l) return;
    for (const Expr& index : l->indices) {
      const Linear sum = to_linear(index);
      for (const LinearTerm& t : sum.terms) {
        const auto* q = t.factors.size() == 1 ? t.factors[0].as<Binary>() : nullptr;
        if (q && q->op == BinaryOp::kFloorDiv && q->a.same_as(axis.var))
          g = {as_int(q->b).value_or(0), t.coefficient, sum.terms.size() > 1};
      }
    }
  });
  return g.size > 1 && is_multiple(axis.extent, g.size) ? g : Groups{};
}

// A vector over several groups is put together of one that is read, where these lie as close as
// their results; it is else gathered, which is worth no more than a vector of one group.
bool is_one_vector(const Groups& g, int64_t lanes) {
  return g.size < lanes && lanes % g.size == 0 && g.apart <= g.size;
}

}  // namespace

void TileRule::part_groups() {
  const Block e = *s_.place(e_).block;
  size_t position = 0;  // among the parallel axes, which are the epilogue's
  for (size_t n = 0; n < block_.axes.size(); ++n) {
    if (block_.axes[n].kind != AxisKind::kParallel) continue;
    const size_t of_epilogue = position++;
    const Groups g = groups_of(block_, block_.axes[n]);
    if (g.size == 0 || of_epilogue >= e.axes.size() ||
        !can_prove_equal(e.axes[of_epilogue].extent, block_.axes[n].extent))
      continue;
    const int64_t lanes = s_.machine().lanes(byte_size(block_.body.as<Store>()->buffer->dtype));
    const bool usual = g.shared ? !is_one_vector(g, lanes) : g.size >= kFewestLanes;
    if (!s_.decide_whether(loop("groups"), usual, Bits::kKept)) return;
    const auto split = [&](const std::string& block, size_t axis) {
      return s_.apply("split_axis", {block, name(block, "g"), name(block, "gc")},
                      {static_cast<int64_t>(axis), g.size});
    };
    if (s_.all_or_nothing([&] { return split(name_, n) && split(e_, of_epilogue); }))
      s_.note(name_ + ": groups of " + std::to_string(g.size) + " columns, each for itself");
    block_ = *s_.place(name_).block;
    return;
  }
}

// Columns: the axis along which results are contiguous, so that accumulators are vectors. Rows:
// axes along which the columns' operand is not read anew (stride 0), so that one load serves all
// rows of the tile; consecutive ones are joined, as pixels of several image rows are.
bool TileRule::find_axes() {
  const BlockPlace e = s_.place(e_);
  const auto accesses = block_accesses(*e.block);
  const BlockAccess& store = accesses.back();
  std::vector<std::pair<int64_t, size_t>> by_stride;
  for (size_t i = 0; i < block_.axes.size(); ++i) {
    if (block_.axes[i].kind == AxisKind::kReduce)
      reduce_.push_back(i);
    else if (block_.axes[i].kind == AxisKind::kParallel)
      parallel_.push_back(i);
    else
      return false;
  }
  if (e.block->axes.size() != parallel_.size()) return false;
  for (size_t n = 0; n < parallel_.size(); ++n) {
    if (loop_of_axis(*e.block, n).empty()) return false;
    if (!can_prove_equal(e.block->axes[n].extent, block_.axes[parallel_[n]].extent)) return false;
    if (is_one(e.block->axes[n].extent)) continue;
    by_stride.push_back({stride_or_far(store, n), n});
  }
  std::stable_sort(by_stride.begin(), by_stride.end());
  if (by_stride.empty()) return false;
  j_ = by_stride[0].second;
  for (size_t k = 1; k < by_stride.size(); ++k) rows_.push_back(by_stride[k].second);
  const auto of_block = block_accesses(block_);
  // First the rows that read the same columns: these are what a tile reads once.
  std::stable_partition(rows_.begin(), rows_.end(),
                        [&](size_t n) { return shares_columns(of_block, parallel_[n]); });
  // Rows that continue each other in every access count as one.
  size_t joined = rows_.empty() ? 0 : 1;
  Expr extent = rows_.empty() ? Expr(1) : block_.axes[parallel_[rows_[0]]].extent;
  asks_where_ = std::any_of(rows_.begin(), rows_.end(), [&](size_t n) {
    return asks_where(block_, parallel_[n]) || asks_where(*e.block, n);
  });
  const bool fits =
      rows_.empty() || !asks_where_ || tiles_cover(s_.machine(), extent_or(extent, 1));
  if (outer_loops_ == 0) blocks_ = term_blocks(s_, block_);
  // Rows enough of a known number are not made a number that nothing is known of, or more sums than may wait.
  auto enough = [&] {
    if (blocks_ && extent_or(extent, 0) >= blocks_->rows) return true;
    return extent_or(extent, 0) >= kMostTileRows &&
           !as_int(block_.axes[parallel_[rows_[joined]]].extent);
  };
  // Where results do not go on so, a place of its own for each row is nothing beside a long sum.
  const bool anywhere = terms() >= kLongSum;
  while (fits && joined < rows_.size() && !enough() &&
         runs_on(of_block, parallel_[rows_[joined]], parallel_[rows_[0]], extent) &&
         (anywhere || runs_on(accesses, rows_[joined], rows_[0], extent))) {
    extent = simplify(extent * block_.axes[parallel_[rows_[joined]]].extent);
    ++joined;
  }
  outer_.assign(rows_.begin() + static_cast<long>(joined), rows_.end());
  rows_.resize(joined);
  row_extent_ = extent;
  return true;
}

bool TileRule::shares_columns(const std::vector<BlockAccess>& accesses, size_t axis) const {
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const Expr& along = a.strides[parallel_[j_]];
    if (along && is_zero(along)) continue;
    if (!a.strides[axis] || !is_zero(a.strides[axis])) return false;
  }
  return true;
}

}  // namespace tilewright::passes
