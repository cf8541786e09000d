// The tile rule: operands packed in the order of the tile, what stays in cache, and padded copies.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/loops/loop_passes.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

// GEMM panel packing as a layout of the constant: [j / width][reduction axes ...][j % width], plus
// [terms] innermost for dot products, so that the micro-kernel reads B as one stream.
void TileRule::pack_operands() {
  const auto is_unpacked = [&](const BlockAccess& a) {
    return !a.write && s_.is_constant(a.buffer) && a.buffer->layout.empty();
  };
  const auto accesses = block_accesses(block_);
  if (std::none_of(accesses.begin(), accesses.end(), is_unpacked)) return;
  // Dot products read groups of terms that lie side by side.
  if (!dot_ && !s_.decide_whether(loop("pack"), true, Bits::kKept)) return;
  for (const BlockAccess& a : accesses) {
    if (!is_unpacked(a)) continue;
    size_t j_dim = a.indices.size();
    std::vector<int64_t> numbers, inner;
    bool plain = true;
    int64_t groups = 0;
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (const auto group = columns_from(a.indices[d]))
        j_dim = j_dim == a.indices.size() ? (groups = *group, d) : j_dim;
      else
        plain &= !uses_var(a.indices[d], block_.axes[parallel_[j_]].var);
    if (!plain || j_dim == a.indices.size()) continue;
    const auto dim = static_cast<int64_t>(j_dim);
    int64_t width = tile_.vectors * lanes_;
    if (groups % width != 0) width = groups;  // panels as wide as a group, that none crosses
    std::vector<bool> used(a.indices.size());
    used[j_dim] = true;
    const size_t last = reduce_.empty() ? 0 : reduce_in_order().back();
    int64_t last_dim = -1;
    for (size_t r : reduce_in_order()) {
      for (size_t d = 0; d < a.indices.size(); ++d)
        if (!used[d] && runs_along(a.indices[d], block_.axes[r].var)) {
          inner.insert(inner.end(), {static_cast<int64_t>(d), dot_ && r == last ? dot_ : 1, 0});
          if (r == last) last_dim = static_cast<int64_t>(d);
          used[d] = true;
        }
    }
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (!used[d]) numbers.insert(numbers.end(), {static_cast<int64_t>(d), 1, 0});
    numbers.insert(numbers.end(), {dim, width, 0});
    numbers.insert(numbers.end(), inner.begin(), inner.end());
    numbers.insert(numbers.end(), {dim, 1, width});
    if (dot_ && last_dim >= 0) numbers.insert(numbers.end(), {last_dim, 1, dot_});
    s_.attempt("transform_layout", {a.buffer->name}, numbers);
    s_.note(name_ + ": the constant '" + a.buffer->name + "' is packed in the order of the tile");
  }
}

// Columns from the start on: 0. From the start of a group of them: how many it has.
std::optional<int64_t> TileRule::columns_from(const Expr& index) const {
  const BlockAxis& columns = block_.axes[parallel_[j_]];
  const Linear l = to_linear(index);
  const auto step = l.coefficient_of(columns.var);
  if (!step || !step->is_constant() || step->constant != 1) return std::nullopt;
  const Expr start = to_expr(l.without(columns.var));
  if (is_zero(start)) return 0;
  const auto group = as_int(columns.extent);
  return group && !uses_var(start, columns.var) && is_multiple(start, *group) ? group
                                                                              : std::nullopt;
}

bool TileRule::runs_along(const Expr& index, const Var& axis) const {
  const Linear l = to_linear(index);
  const auto step = l.coefficient_of(axis);
  if (!step || !step->is_constant() || step->constant != 1) return false;
  const Expr start = to_expr(l.without(axis));
  return std::none_of(reduce_.begin(), reduce_.end(),
                      [&](size_t r) { return uses_var(start, block_.axes[r].var); });
}

void TileRule::note_blocks() {
  s_.note(name_ +
          ": a panel of columns over the whole reduction is larger than half of the cache: " +
          "the outer part of the reduction goes around the rows");
}

// BLIS's loop over k_c: the panel of B for one block of the reduction stays in half of L2 while all
// rows pass over it; accumulators wait on the stack in between.
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
  const int64_t most = bytes_of_a_panel(s_.machine());
  if (panel <= most || *rows < 3 * tile_.rows || *rows * width * byte_size(t) > kMostLocalBytes)
    return true;
  if (!s_.decide_whether(loop("block_terms"), true, Bits::kKept)) return true;
  size_t outer = 0;
  for (; panel > most / 2 && outer + 1 < extents.size(); ++outer) {
    panel /= extents[outer];
    hoisted_.push_back(reduce_loops_[outer]);
  }
  if (panel <= most / 2) {
    note_blocks();
    return true;
  }
  // The innermost loop is cut where its extent has a divisor to cut it at.
  const std::string last = reduce_loops_.back();
  const int64_t step = std::max<int64_t>(dot_, 1) * (matrix_ ? MatrixTile::kGroups : 1),
                n = extents.back() / step;
  std::vector<int64_t> values;
  for (int64_t parts = 2; parts <= 16; ++parts)
    if (n % parts == 0 && panel / parts <= most / 2) values.push_back(parts);
  if (values.empty()) return true;
  const int64_t parts = s_.decide(loop("term_blocks"), values, values[0], Bits::kKept);
  const std::string around = loop("kb"), inside = loop("ki");
  if (!s_.apply("split", {last, around, inside}, {n / parts})) return false;
  hoisted_.push_back(around);
  reduce_loops_.back() = around;
  reduce_loops_.push_back(inside);
  note_blocks();
  return true;
}

std::string TileRule::padding_block() const {
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer->scope == Scope::kParam || a.buffer == block_.body.as<Store>()->buffer)
      continue;
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
