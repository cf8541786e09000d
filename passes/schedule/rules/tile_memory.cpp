// The tile rule: what stays in cache, and padded copies.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/loops/loop_passes.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

void TileRule::note_blocks() {
  s_.note(name_ +
          ": a panel of columns over the whole reduction is larger than a part of the cache: " +
          "the outer part of the reduction goes around the rows");
}

// Does what moves with the columns, or with the rows, lie in pieces, a few elements of each row of memory,
// instead of in panels? It then comes from the second cache with no prefetcher ahead of it.
bool TileRule::reads_pieces() const {
  if (reduce_.empty()) return false;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer) continue;
    const auto by_column = a.stride(parallel_[j_]), by_term = a.stride(reduce_in_order().back()),
               by_row = rows_.empty() ? std::nullopt : a.stride(parallel_[rows_[0]]);
    const int64_t piece = by_column == 1                  ? tile_.vectors * lanes_
                          : by_column == 0 && by_row == 1 ? kCacheLine / byte_size(a.buffer->dtype)
                                                          : 0;
    if (piece > 0 && by_term && std::abs(*by_term) > piece) return true;
  }
  return false;
}

// Of rows that were copied into panels: what all terms lie in. Between those of a window with strides lies what
// no term reads.
int64_t TileRule::bytes_of_row_panel() const {
  int64_t most = 0;
  for (const BlockAccess& a : block_accesses(block_)) {
    const Layout& layout = a.buffer->layout;
    if (a.write || a.stride(parallel_[j_]) != 0 || layout.empty() || layout.back().modulus == 0)
      continue;
    for (size_t r : reduce_)
      most = std::max(most, a.stride(r).value_or(0) * extent_or(block_.axes[r].extent, 1) *
                                byte_size(a.buffer->dtype));
  }
  return most;
}

// BLIS's loop over k_c: the panel of B for one block of the reduction stays in half of L2, or of L1 where it
// is no panel, while all rows pass over it; accumulators wait on the stack in between, or in the second cache.
bool TileRule::block_reduction() {
  auto rows = as_int(row_extent_);
  if (columns_first_ && rows)
    for (size_t n : outer_) rows = *rows * extent_or(block_.axes[parallel_[n]].extent, 1);
  const DType t = block_.body.as<Store>()->buffer->dtype;
  const int64_t width = tile_.vectors * lanes_, each = dot_ ? 1 : byte_size(t);
  if (!rows || reduce_loops_.empty()) return true;
  std::vector<int64_t> extents;
  int64_t panel = width * each;
  for (size_t r : reduce_in_order()) {
    extents.push_back(extent_or(block_.axes[r].extent, 1));
    panel *= extents.back();
  }
  panel = std::max(panel, bytes_of_row_panel());
  const bool pieces = extents.size() > 1 && reads_pieces();
  const int64_t most = pieces ? s_.machine().l1_bytes : bytes_of_a_panel(s_.machine());
  if (panel <= most || *rows < 3 * tile_.rows ||
      *rows * width * byte_size(t) > std::max(kMostLocalBytes, bytes_of_sums(s_.machine())))
    return true;
  if (!s_.decide_whether(loop("block_terms"), true, Bits::kKept)) return true;
  // An outer loop goes around the rows, or a part of it where that does: short passes over rows take long.
  for (size_t k = 0; panel > most / 2 && k < extents.size(); ++k) {
    const bool innermost = k + 1 == extents.size();
    if (innermost && pieces) break;
    const int64_t step = std::max<int64_t>(dot_, 1) * (matrix_ ? MatrixTile::kGroups : 1),
                  n = innermost ? extents[k] / step : extents[k],
                  parts = decide_parts(n, innermost ? n + 1 : n, panel, most / 2);
    if (parts > 1) {
      const std::string around = loop("kb"), inside = loop("ki");
      if (!s_.apply("split", {reduce_loops_[k], around, inside}, {n / parts})) return false;
      hoisted_.push_back(around);
      reduce_loops_[k] = around;
      reduce_loops_.insert(reduce_loops_.begin() + static_cast<long>(k) + 1, inside);
      break;
    }
    if (innermost) return true;
    panel /= extents[k];
    hoisted_.push_back(reduce_loops_[k]);
  }
  note_blocks();
  return true;
}

// Of n steps, fewer than `below` parts, where n has such divisors that make a panel small enough; 1: it has none.
int64_t TileRule::decide_parts(int64_t n, int64_t below, int64_t panel, int64_t most) {
  constexpr int64_t kMostParts = 16;
  std::vector<int64_t> values;
  for (int64_t parts = 2; parts <= kMostParts && parts < below; ++parts)
    if (n % parts == 0 && panel / parts <= most) values.push_back(parts);
  return values.empty() ? 1 : s_.decide(loop("term_blocks"), values, values[0], Bits::kKept);
}

std::string TileRule::padding_block() const {
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer->scope == Scope::kParam || a.buffer == block_.body.as<Store>()->buffer)
      continue;
    if (!a.buffer->layout.empty() && a.buffer->layout.back().modulus != 0) continue;  // panels
    for (const BlockPlace& p : all_blocks(s_.kernel().body))
      if (!p.block->init && p.block->body.as<Store>() &&
          p.block->body.as<Store>()->buffer == a.buffer)
        return p.block->name;
  }
  return "";
}

int64_t TileRule::rows_of_a_copy(int64_t extent, int64_t tasks, int64_t bytes) const {
  constexpr int64_t kMostRows = 16, kFewestGroups = 8;
  const int64_t groups = std::max<int64_t>(kFewestGroups, 4 * s_.machine().threads);
  for (int64_t n = std::min(extent, kMostRows); n > 1; --n)
    if (extent % n == 0 && tasks / n >= groups &&
        2 * n * bytes / tasks <= bytes_of_a_panel(s_.machine()))
      return n;
  return 1;
}

// Halide's compute_at for the padded input, so that a task pads only the rows it reads.
bool TileRule::stage_padding() {
  constexpr int64_t kFewestTasks = 16;
  const std::string padding = padding_block();
  if (padding.empty() || outer_.empty() || outer_loops_ > 0 || columns_first_) return false;
  const BlockPlace p = s_.place(name_), from = s_.place(padding);
  const Buffer& copy = from.block->body.as<Store>()->buffer;
  int64_t bytes = byte_size(copy->dtype), tasks = 1;
  for (const Expr& e : copy->shape) bytes *= extent_or(e, 1);
  for (size_t i = 0; i < outer_count_; ++i) tasks *= extent_or(p.loops[i]->extent, 1);
  if (bytes <= bytes_of_a_panel(s_.machine()) ||
      tasks < std::max<int64_t>(kFewestTasks, 4 * s_.machine().threads))
    return false;
  if (!s_.decide_whether(loop("stage_padding"), true, Bits::kKept)) return false;
  std::vector<std::string> around;
  for (size_t i = 0; i < outer_count_; ++i) around.push_back(p.loops[i]->var.name());
  // Neighbouring rows read much of the same.
  const int64_t usual =
      rows_of_a_copy(extent_or(p.loops[outer_count_ - 1]->extent, 1), tasks, bytes);
  const int64_t group = s_.decide(loop("copy_rows"), with({1, 2, 4, 8}, usual), usual, Bits::kKept);
  const bool done = s_.all_or_nothing([&] {
    if (group > 1) {
      if (!s_.apply("split", {around.back(), name(name_, "go"), name(name_, "gi")}, {group}))
        return false;
      around.back() = name(name_, "go");
    }
    const auto fused = [&](size_t i) { return name_ + ".rows" + std::to_string(i); };
    const std::string rows = collapse_loops(s_, around, fused);
    if (around.size() > 1 && rows != fused(around.size() - 1)) return false;
    return s_.apply("compute_at", {padding, rows}) && s_.apply("parallelize", {rows});
  });
  if (!done) return false;
  s_.note(padding +
          ": the padded copy is larger than the cache: each task pads what its rows read");
  vectorize_copy(padding, byte_size(copy->dtype));
  return true;
}

void TileRule::vectorize_copy(const std::string& padding, int bytes) {
  const For* inner = s_.place(padding).loops.back();
  const int64_t widest = s_.machine().lanes(std::max(bytes, 4)),
                lanes = fitting_lanes(widest, extent_or(inner->extent, widest));
  if (!s_.all_or_nothing([&] {
        return s_.apply("split", {inner->var.name(), padding + ".o", padding + ".v"}, {lanes}) &&
               s_.apply("vectorize", {padding + ".v"});
      }))
    s_.lose_step();
}

}  // namespace tilewright::passes
