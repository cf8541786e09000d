// The tile rule: which axes are rows and columns of the tile, and its size.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {
constexpr int64_t kMostTileRows = 14;
}  // namespace

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
    by_stride.push_back(
        {store.strides[n] ? as_int(store.strides[n]).value_or(int64_t{1} << 40) : int64_t{1} << 50,
         n});
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
  // Joining pays when tiles fit the innermost of them; a row of its own with a tail is better
  // than tiles of one.
  const int64_t inner = rows_.empty() ? 1 : extent_or(extent, 1);
  bool fits = false;
  for (int64_t r = 4; r <= kMostTileRows; ++r) fits |= inner % r == 0 || r % inner == 0;
  // Rows enough of a known number are not made a number that nothing is known of.
  auto enough = [&] {
    return extent_or(extent, 0) >= kMostTileRows &&
           !as_int(block_.axes[parallel_[rows_[joined]]].extent);
  };
  while (fits && joined < rows_.size() && !enough() &&
         runs_on(of_block, parallel_[rows_[joined]], parallel_[rows_[0]], extent) &&
         runs_on(accesses, rows_[joined], rows_[0], extent)) {
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

std::vector<size_t> TileRule::reduce_in_order() const {
  if (const SumOrder* sums = s_.sum_order(m_)) return sums->axes;
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t r : reduce_) {
    int64_t stride = is_one(block_.axes[r].extent) ? INT64_MAX : 0;
    for (const BlockAccess& a : block_accesses(block_))
      if (!a.write && !s_.is_constant(a.buffer) && a.strides[r])
        stride = std::max(stride, as_int(a.strides[r]).value_or(int64_t{1} << 40));
    order.push_back({-stride, r});
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<size_t> result;
  for (auto& [stride, r] : order) result.push_back(r);
  return result;
}

void TileRule::choose() {
  dot_ = terms_of_dot();
  const DType t = block_.body.as<Store>()->buffer->dtype;
  const int64_t rows = extent_or(row_extent_, kUnknownExtent),
                columns = extent_or(block_.axes[parallel_[j_]].extent, 2 * kUnknownExtent);
  lanes_ = lanes_for(s_.machine(), byte_size(t), columns);
  const int64_t inner =
      rows_.size() > 1 ? extent_or(block_.axes[parallel_[rows_[0]]].extent, 1) : 0;
  // An operand that moves with both rows and columns is read anew for each result: fewer
  // accumulators do.
  bool shared = false;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const Expr& sj = a.strides[parallel_[j_]];
    shared |= sj && is_zero(sj);
  }
  if (shared && dot_)
    matrix_ = choose_matrix_tile(s_.machine(), left_, rows, columns, depth_, row_spans());
  if (matrix_) {
    tile_.rows = matrix_->all_rows();
    tile_.vectors = matrix_->column_tiles;
    s_.note(m_ + ": " + explain(*matrix_, as_int(row_extent_)));
  } else if (shared) {
    const TileChoice choice =
        choose_tile(s_.machine(), rows, columns, lanes_, inner, outer_tiles());
    tile_ = choice.best;
    s_.note(m_ + ": " + explain(choice, lanes_, s_.machine().vector_registers));
  } else {
    const int64_t vectors = (columns + lanes_ - 1) / lanes_;
    slides_ = widens_again();
    tile_.vectors = slides_                                ? 1
                    : vectors % 2 != 0 && vectors % 3 == 0 ? 3
                                                           : std::min<int64_t>(2, vectors);
    const int64_t most = std::min<int64_t>(rows, s_.machine().vector_registers < 32 ? 4 : 8);
    for (int64_t r = 1; r <= most; ++r)
      if (inner ? inner % r == 0 : rows % r == 0 || r == 4) tile_.rows = r;
    s_.note(m_ + ": " + std::to_string(tile_.rows) + " rows x " + std::to_string(tile_.vectors) +
            " vectors of " + std::to_string(lanes_) +
            " lanes; no operand is shared by the results, so that more sums bring nothing");
  }
  if (dot_) s_.note(m_ + ": sums of " + std::to_string(dot_) + " products by one instruction");
  columns_first_ = goes_by_columns();
  if (columns_first_)
    s_.note(m_ + ": the weights are larger than the cache and the rows are not: a panel of " +
            "columns at a time, over all rows");
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
  if (outer_loops_ > 0 || instances(block_) < kParallelWork * 4) return 0;
  int64_t n = 1;
  for (size_t k : outer_) n *= extent_with(block_.axes[parallel_[k]].extent, 1);
  return n;
}

bool TileRule::goes_by_columns() const {
  if (outer_.empty() || outer_loops_ > 0) return false;
  int64_t weights = 0, rest = 0;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    int64_t bytes = byte_size(a.buffer->dtype);
    for (const Expr& e : a.buffer->shape)
      bytes = std::min<int64_t>(bytes * std::max<int64_t>(extent_or(e, int64_t{1} << 20), 1),
                                int64_t{1} << 40);
    (s_.is_constant(a.buffer) ? weights : rest) += bytes;
  }
  const int64_t panels = extent_or(block_.axes[parallel_[j_]].extent, 1) / (tile_.vectors * lanes_);
  return weights > s_.machine().l2_bytes / 2 && rest < s_.machine().l2_bytes / 2 &&
         panels >= 2 * std::max(s_.machine().threads, 1);
}

int64_t TileRule::terms_of_dot() {
  if (reduce_.empty()) return 0;
  const size_t inner = reduce_in_order().back();
  const auto extent = as_int(block_.axes[inner].extent);
  DType left = DType::kInt32, right = left;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    if ((s_.is_constant(a.buffer) && a.buffer->layout.empty()) || is_packed_for(a, inner))
      right = a.buffer->dtype;
    else if (a.strides[inner] && is_one(a.strides[inner]) && a.strides[parallel_[j_]] &&
             is_zero(a.strides[parallel_[j_]]))
      left = a.buffer->dtype;
  }
  const int64_t terms = dot_terms(left);
  bool fits = right == dot_partner(left) || (right == DType::kInt8 && left == DType::kInt16);
  fits &= block_.body.as<Store>()->buffer->dtype == dot_sum(left);
  // Where there is no instruction, bf16 is widened and multiplied as f32.
  if (left == DType::kBFloat16) fits &= s_.machine().has("avx512bf16") && !s_.sum_order(m_);
  if (!terms || !fits || !extent || *extent % terms != 0) return 0;
  left_ = left;
  depth_ = *extent;
  return terms;
}

bool TileRule::is_packed_for(const BlockAccess& a, size_t reduce) const {
  const Layout& layout = a.buffer->layout;
  if (layout.size() < 2) return false;
  const LayoutAxis &term = layout.back(), &column = layout[layout.size() - 2];
  auto moves = [&](const LayoutAxis& l, size_t axis) {
    return a.indices[static_cast<size_t>(l.dim)].same_as(block_.axes[axis].var);
  };
  return term.divisor == 1 && term.modulus == dot_terms(DType::kUInt8) && moves(term, reduce) &&
         column.divisor == 1 && moves(column, parallel_[j_]) &&
         column.modulus ==
             lanes_for(s_.machine(), byte_size(dot_sum(DType::kUInt8)),
                       extent_or(block_.axes[parallel_[j_]].extent, 2 * kUnknownExtent));
}

}  // namespace tilewright::passes
