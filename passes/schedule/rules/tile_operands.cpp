// The tile rule: what it asks of its operands, how they lie and how many bytes pass by.
#include <algorithm>

#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

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

// Rows that lie side by side in panels; 0: they lie in none.
int64_t TileRule::rows_of_panels() const {
  for (const BlockAccess& a : block_accesses(block_))
    if (!a.write && a.stride(parallel_[j_]) == 0 && !a.buffer->layout.empty() &&
        a.buffer->layout.back().modulus != 0)
      return a.buffer->layout.back().modulus;
  return 0;
}

int64_t TileRule::terms() const {
  int64_t n = 1;
  for (size_t r : reduce_)
    n = std::min<int64_t>(n * extent_or(block_.axes[r].extent, 1), int64_t{1} << 30);
  return n;
}

// Steps of the reduction, where rows lie in panels.
int64_t TileRule::steps_by_panels() const {
  int64_t steps = rows_of_panels() > 0 ? 1 : 0;
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

int64_t TileRule::whole_span() const {
  return asks_where_ && rows_.size() > 1 ? extent_or(block_.axes[parallel_[rows_[0]]].extent, 1)
                                         : 0;
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
  constexpr int64_t kMost = int64_t{1} << 32;  // times the most terms is less than an int64_t's
  return std::min(byte_size(a.buffer->dtype) * columns_, kMost) * terms();
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

int64_t TileRule::all_panels() const {
  const int64_t width = tile_.vectors * lanes_;
  return (columns_ + width - 1) / width;
}

// Do all places that the axes around make read the same columns?
bool TileRule::shares_weights() const {
  const auto accesses = block_accesses(block_);
  return std::all_of(outer_.begin(), outer_.end(),
                     [&](size_t k) { return shares_columns(accesses, parallel_[k]); });
}

// Either all weights pass by for each place, or its rows for each panel: the fewer bytes.
bool TileRule::goes_by_columns() const {
  constexpr double kFewer = 0.5;
  constexpr int64_t kUnknownTerms = int64_t{1} << 20;
  const OperandBytes bytes = operand_bytes();
  const int64_t room = bytes_of_a_panel(s_.machine());
  if (bytes.weights <= room || panels() < 2 * std::max(s_.machine().threads, 1)) return false;
  if (bytes.rest < room) return true;
  double of_a_place = static_cast<double>(row_count_ * byte_size(DType::kFloat32));
  for (size_t r : reduce_)
    of_a_place *= static_cast<double>(extent_or(block_.axes[r].extent, kUnknownTerms));
  of_a_place = std::min(of_a_place, static_cast<double>(bytes.rest));
  return shares_weights() && bytes.weights / panels() <= room &&
         static_cast<double>(panels()) * of_a_place < kFewer * static_cast<double>(bytes.weights);
}

// Without an operand that is shared, the weights of a panel are as many as the sums that they go
// into, and reading them anew for each row of results costs as much as the rows. All rows are passed
// over for each panel, and should come from the second cache.
bool TileRule::keeps_columns() const {
  return panels() >= 2 && operand_bytes().rest <= s_.machine().l2_bytes;
}

}  // namespace tilewright::passes
