// The tile rule: what threads share out.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

bool TileRule::is_large_step() const {
  return loops_of_steps(s_, name_) == outer_loops_ &&
         fork_cost(s_.machine(), least_work_of(s_, name_)).pays();
}

void TileRule::parallelize_step() {
  if (!is_large_step()) return;
  const BlockPlace p = s_.place(name_);
  size_t n = outer_loops_;
  while (n + 1 < p.loops.size() && is_one(p.loops[n]->extent)) ++n;
  const std::string tasks = p.loops[n]->var.name();
  if (s_.decide_whether(loop("fork"), true, Bits::kKept)) s_.attempt("parallelize", {tasks});
}

// Is what moves with the rows known to be far larger than the second cache?
bool TileRule::reads_rows_from_memory() const {
  constexpr int64_t kTimesL2 = 16;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer == block_.body.as<Store>()->buffer || a.stride(parallel_[j_]) != 0)
      continue;
    int64_t bytes = byte_size(a.buffer->dtype);
    for (const Expr& e : a.buffer->shape)
      bytes = std::min<int64_t>(bytes * extent_or(e, 0), int64_t{1} << 40);
    if (bytes > kTimesL2 * s_.machine().l2_bytes) return true;
  }
  return false;
}

// Each thread takes rows of its own, and all panels for them: then it reads what it wrote itself, or may
// have, and no thread all that the others wrote. Panels stream from L2 for each tile of rows.
bool TileRule::share_out_rows() {
  const auto rows = as_int(row_extent_);
  const int64_t threads = std::max(s_.machine().threads, 1);
  // One thread does so where rows come from memory: once, and not for each panel.
  if ((threads == 1 && !reads_rows_from_memory()) || columns_first_ || !hoisted_.empty() ||
      rows_.empty() || !rows || *rows % tile_.rows != 0)
    return false;
  const int64_t tiles = *rows / tile_.rows;
  const bool fits = operand_bytes().weights <= bytes_of_a_panel(s_.machine());
  if (tiles < threads || panels() < 2 || !s_.decide_whether(loop("rows_first"), fits, Bits::kKept))
    return false;
  return s_.all_or_nothing([&] {
    if (!s_.apply("reorder", {loop("io"), loop("jo")})) return false;
    const BlockPlace p = s_.place(name_);
    std::vector<std::string> loops;
    for (const For* f : p.loops) {
      const std::string name = f->var.name();
      if (name == loop("jo") && tiles >= 4 * threads) break;
      loops.push_back(name);
      if (name == loop("jo")) break;
    }
    const std::string tasks = collapse_loops(s_, loops, [&](size_t i) {
      return loop("par") + loops[i].substr(loops[i].rfind('.') + 1);
    });
    return s_.apply("parallelize", {tasks});
  });
}

// Tasks are outer axes and panels; row tiles too where these are too few (2-d partition).
void TileRule::parallelize() {
  if (outer_loops_ > 0) return parallelize_step();
  if (!forks(s_, name_) || share_out_rows()) return;
  const BlockPlace p = s_.place(name_);
  std::vector<std::string> loops{p.loops[0]->var.name()};
  for (size_t i = 1; i <= outer_count_ && i < p.loops.size(); ++i)
    loops.push_back(p.loops[i]->var.name());
  std::string parallel = collapse_loops(
      s_, loops, [&](size_t i) { return loop("par") + loops[i].substr(loops[i].rfind('.') + 1); });
  const int64_t tasks = extent_with(s_.place(name_).loops[0]->extent, 1);
  const int64_t threads = std::max(s_.machine().threads, 1);
  // Too few tasks to balance: the row tiles are dealt out too, when no row is left over.
  const auto rows = as_int(row_extent_);
  if (rows && *rows % tile_.rows == 0 && !rows_.empty() &&
      s_.decide_whether(loop("deal_rows"), tasks < 4 * threads, Bits::kKept) &&
      s_.apply("collapse", {parallel, loop("io"), loop("par_io")}))
    parallel = loop("par_io");
  s_.attempt("parallelize", {parallel});
}

}  // namespace tilewright::passes
