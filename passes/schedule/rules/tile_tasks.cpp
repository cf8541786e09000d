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

// Is what moves with the rows, results among it, known to be more than a part of the second cache? Then it comes
// from memory for each panel.
bool TileRule::moves_rows_through_memory() const {
  constexpr int64_t kPart = 4;
  const auto accesses = block_accesses(block_);
  return std::any_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
    return a.stride(parallel_[rows_[0]]) != 0 &&
           kPart * bytes_of(*a.buffer) > s_.machine().l2_bytes;
  });
}

// Are panels of columns copied, which tasks may do that have all rows?
bool TileRule::copies_panels() const {
  return std::any_of(copies_.begin(), copies_.end(), [](const Panels& p) { return p.of_columns; });
}

bool TileRule::shares_out_evenly(int64_t tasks) const {
  constexpr int64_t kTasksOfAThread = 4;
  const int64_t threads = std::max(s_.machine().threads, 1);
  return tasks % threads == 0 || tasks >= kTasksOfAThread * threads;
}

// Of all terms of all rows of one place.
double TileRule::bytes_of_rows() const {
  const double elements =
      static_cast<double>(extent_or(row_extent_, 1)) * static_cast<double>(terms());
  double most = 0;
  for (const BlockAccess& a : block_accesses(block_))
    if (!a.write && a.stride(parallel_[rows_[0]]) != 0 && a.stride(parallel_[j_]) == 0)
      most = std::max(most, elements * byte_size(a.buffer->dtype));
  return most;
}

// Panels of columns that all tiles of rows find in the second cache, as they do all panels, or parts of these of equal
// size. A tile of rows comes from memory once for these, instead of once for each; 1: too few to be worth that.
int64_t TileRule::panels_kept() const {
  // Rows that the second cache holds, all of one place, pass by from there where panels are few.
  const int64_t fewest = bytes_of_rows() > static_cast<double>(s_.machine().l2_bytes) ? 2 : 3;
  int64_t bytes = 0;
  for (const BlockAccess& a : block_accesses(block_))
    if (!a.write && a.stride(parallel_[rows_[0]]) == 0)
      bytes += !s_.is_constant(a.buffer) && width_of_panels(a) > 0 ? bytes_of_panels(a)
                                                                   : bytes_of(*a.buffer);
  const int64_t n = all_panels(), room = bytes_of_a_panel(s_.machine());
  if (bytes <= room) return n;
  if (!moves_rows_through_memory()) return 1;
  const int64_t most = std::min(n - 1, room * n / bytes);
  int64_t found = 1;
  for (int64_t kept = most; kept >= fewest; --kept) {
    if (n % kept != 0) continue;
    if (!copies_panels() || shares_out_evenly(n / kept)) return kept;
    if (found == 1) found = kept;
  }
  return found;
}

// Each thread takes rows of its own, and all panels for them: then it reads what it wrote itself, or may
// have, and no thread all that the others wrote. Panels stream from L2 for each tile of rows.
bool TileRule::share_out_rows() {
  constexpr int64_t kManyTiles = 64;  // of which one that lacks rows takes no time
  const auto rows = as_int(row_extent_);
  const int64_t threads = std::max(s_.machine().threads, 1);
  // One thread does so where rows come from memory: once, and not for each panel.
  if (columns_first_ || !hoisted_.empty() || rows_.empty() || !rows ||
      (threads == 1 && !moves_rows_through_memory()))
    return false;
  const int64_t tiles = *rows / tile_.rows, kept = panels_kept(), n = all_panels();
  const bool in_parts = kept > 1 && kept < n,
             whole = *rows % tile_.rows == 0 || tiles >= kManyTiles * threads,
             copies_in_parts = in_parts && copies_panels() && shares_out_evenly(n / kept),
             places_alone = has_many_places() && (copies_panels() || by_places_);
  if (tiles < threads || panels() < 2 || (!whole && !(in_parts && n / kept % threads == 0)) ||
      !s_.decide_whether(loop("rows_first"), kept > 1, Bits::kKept))
    return false;
  return s_.all_or_nothing([&] {
    const std::string inner = loop(in_parts ? "ji" : "jo");
    if (in_parts && !s_.apply("split", {loop("jo"), loop("jb"), inner}, {kept})) return false;
    if (!s_.apply("reorder", {loop("io"), inner})) return false;
    const BlockPlace p = s_.place(name_);
    std::vector<std::string> loops;
    for (const For* f : p.loops) {
      const std::string name = f->var.name();
      if ((name == inner && tiles >= 4 * threads) ||
          (name == loop("io") && (!whole || copies_in_parts || places_alone)))
        break;
      loops.push_back(name);
      if (name == inner) break;
    }
    const std::string tasks = collapse_loops(s_, loops, [&](size_t i) {
      return loop("par") + loops[i].substr(loops[i].rfind('.') + 1);
    });
    return s_.apply("parallelize", {tasks});
  });
}

// Are there so many products side by side that each is a task? All panels then share what it copies.
bool TileRule::has_many_places() const {
  const BlockPlace p = s_.place(name_);
  int64_t places = 1;
  for (size_t i = 0; i < outer_count_; ++i) places *= extent_with(p.loops[i]->extent, 1);
  return !columns_first_ && are_tasks(s_.machine(), places);
}

// Of panels that go around all places: as many as stay in the second cache while the rows of all places pass by once
// for these, instead of once for each, from where no cache is fast.
void TileRule::group_panels() {
  constexpr int64_t kFewest = 2;
  if (!columns_first_ || !hoisted_.empty() || rows_.empty() || !shares_weights()) return;
  const OperandBytes bytes = operand_bytes();
  const int64_t n = all_panels(), room = bytes_of_a_panel(s_.machine());
  int64_t places = 1;  // 0: not known
  for (size_t k : outer_) places *= extent_or(block_.axes[parallel_[k]].extent, 0);
  if (bytes.rest <= bytes_of_outer_cache(s_.machine()) / 2 || bytes.weights <= 0 || places == 0)
    return;
  int64_t kept = std::min(n / 2, room * n / bytes.weights);
  while (kept >= kFewest && (n % kept != 0 || !shares_out_evenly(n / kept * places))) --kept;
  if (kept < kFewest || !s_.decide_whether(loop("keep_panels"), true, Bits::kKept)) return;
  const BlockPlace p = s_.place(name_);
  std::vector<std::string> order;
  for (size_t i = 1; i <= outer_count_; ++i) order.push_back(p.loops[i]->var.name());
  order.insert(order.end(), {loop("io"), loop("ji")});
  const bool done = s_.all_or_nothing([&] {
    return s_.apply("split", {loop("jo"), loop("jb"), loop("ji")}, {kept}) &&
           s_.apply("reorder", order);
  });
  if (!done) s_.lose_step();
}

// Tasks are outer axes and panels; row tiles too where these are too few (2-d partition).
void TileRule::parallelize() {
  if (outer_loops_ > 0) return parallelize_step();
  if (!forks(s_, name_) || share_out_rows()) return;
  group_panels();
  const BlockPlace p = s_.place(name_);
  std::vector<std::string> loops{p.loops[0]->var.name()};
  const bool places_alone = (blocks_ && group_ == 0) || has_many_places();
  for (size_t i = 1; i < outer_count_ + (places_alone ? 0 : 1) && i < p.loops.size(); ++i)
    loops.push_back(p.loops[i]->var.name());
  std::string parallel = collapse_loops(
      s_, loops, [&](size_t i) { return loop("par") + loops[i].substr(loops[i].rfind('.') + 1); });
  const int64_t tasks = extent_with(s_.place(name_).loops[0]->extent, 1);
  const int64_t threads = std::max(s_.machine().threads, 1);
  // Too few tasks to balance: the row tiles are dealt out too, when no row is left over.
  const auto rows = as_int(row_extent_);
  if (rows && !blocks_ && *rows % tile_.rows == 0 && !rows_.empty() &&
      s_.decide_whether(loop("deal_rows"), tasks < 4 * threads, Bits::kKept) &&
      s_.apply("collapse", {parallel, loop("io"), loop("par_io")}))
    parallel = loop("par_io");
  s_.attempt("parallelize", {parallel});
}

}  // namespace tilewright::passes
