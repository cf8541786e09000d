// The tile rule, of products whose operands are known at the run alone: what a tile would read across rows of memory is
// copied first, in the order in which tiles read it.
//
// Copied into panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008) they are
// one stream, and a copy costs as much as the product with a few dozen rows or columns (cost/panel_width.h). Of the
// steps of an ordered axis (a recurrent layer's) one copy before them all serves each; a temporary that was made
// before them is laid out that way at once. Matrices that are values of the graph were copied there
// (graph/pack_operands.cpp).
#include <algorithm>

#include "passes/schedule/rules/copied_operands.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Pieces of rows are read, of rows that lie apart: hints go whole rows ahead.
void prefetch_rows(ScheduleState& s, const std::string& copy, const Panels& p) {
  constexpr int64_t kFewest = 16;
  for (const BlockAccess& a : block_accesses(*s.place(copy).block)) {
    const auto row = a.stride(static_cast<size_t>(p.across.back()));
    if (a.write || !row || *row <= 0 || bytes_of(*a.buffer) <= s.machine().l2_bytes) continue;
    const int64_t bytes = *row * byte_size(a.buffer->dtype),
                  rows = std::max(kFewest, kRowsAhead / bytes);
    if (!s.decide_whether(copy + ".ahead", true, Bits::kKept)) return;
    s.attempt("prefetch", {copy, a.buffer->name}, {rows * *row});
    s.note(copy + ": prefetches what lies " + std::to_string(rows) + " rows further on");
  }
}

bool schedule_copy(ScheduleState& s, const std::string& copy, const Panels& p) {
  const auto of_dim = [&](int d) { return copy + ".i" + std::to_string(d); };
  const std::string line = copy + ".l", lane = copy + ".v", group = copy + ".g",
                    stream = copy + ".s";
  std::vector<std::string> order{group};
  for (int d : p.across) order.push_back(of_dim(d));
  order.insert(order.end(), {stream, lane});
  const bool tasks = forks(s, copy);
  if (!s.apply("split", {of_dim(p.dim), line, lane}, {p.lanes}) ||
      !s.apply("split", {line, group, stream}, {p.streams}) || !s.apply("reorder", order) ||
      !s.apply("vectorize", {lane}))
    return false;
  prefetch_rows(s, copy, p);
  if (!tasks) return true;
  // Images, too, where there are several; rows of a matrix are no tasks.
  std::string task = group;
  for (size_t k = 0; k + 1 < p.across.size(); ++k) {
    const std::string both = copy + ".t" + std::to_string(k);
    if (!s.apply("collapse", {task, order[k + 1], both})) return false;
    task = both;
  }
  return s.apply("parallelize", {task});
}

// [dim / width, the others, width].
std::vector<int64_t> layout_of(const Panels& p) {
  std::vector<int64_t> layout{p.dim, p.width, 0};
  for (int d : p.across) layout.insert(layout.end(), {d, 1, 0});
  layout.insert(layout.end(), {p.dim, 1, p.width});
  return layout;
}

}  // namespace

void copy_operands(ScheduleState& s, const std::string& block) {
  const BlockPlace place = s.place(block);
  if (place.loops.size() < place.block->axes.size()) return;
  const bool in_a_step = place.loops.size() > place.block->axes.size();
  if (!in_a_step && term_blocks(s, *place.block) &&
      s.decide_whether(block + ".pass_once", true, Bits::kKept))
    return;
  const std::vector<Panels> panels = copied_operands(s, place);
  if (panels.empty() || !s.decide_whether(block + ".copy_operands", true, Bits::kKept)) return;
  s.all_or_nothing([&] {
    for (const Panels& p : panels) {
      const std::string copy = p.is_made_here ? p.buffer : p.buffer + "_packed";
      if (!p.is_made_here && !s.apply("cache_read", {block, p.buffer, copy})) return false;
      if (!s.apply("transform_layout", {copy}, layout_of(p)) ||
          (!p.is_made_here && !schedule_copy(s, copy + "_copy", p)))
        return false;
      s.note(block + ": '" + p.buffer + (p.is_made_here ? "' lies" : "' is copied") +
             " in panels of " + std::to_string(p.width) + ", as a tile reads it");
    }
    return true;
  });
}

}  // namespace tilewright::passes
