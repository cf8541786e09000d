// The tile rule: what comes from memory, and where results go, is brought near while what stands
// before it is worked on.
//
// A tile of rows and its results pass by once for all panels of columns, and a panel for all tiles of rows: the
// next one lies right behind. Without that the first pass over each waits for memory, and those after it compute
// while memory is idle.
#include <algorithm>
#include <array>
#include <utility>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

// The innermost loop around a tile that moves one of the axes; empty where none does, or not with each iteration.
std::string TileRule::loop_that_moves(const std::vector<size_t>& axes) const {
  const BlockPlace p = s_.place(name_);
  for (size_t i = p.loops.size(); i-- > 0;) {
    const For& f = *p.loops[i];
    const bool around = f.loop_kind == LoopKind::kSerial || f.loop_kind == LoopKind::kParallel;
    bool feeds = false, moves = false;
    for (size_t axis : axes) {
      const Expr& binding = p.block->bindings[axis];
      feeds |= uses_var(binding, f.var);
      const auto at = [&](int64_t iteration) {
        VarMap first;
        for (const For* other : p.loops) first[other->var.get()] = Expr(0);
        first[f.var.get()] = Expr(iteration);
        return simplify(substitute(binding, first));
      };
      moves |= !can_prove_equal(at(0), at(1));
    }
    if (around && feeds) return moves ? f.var.name() : "";
  }
  return "";
}

int64_t moves_inside(const BlockPlace& p, const std::string& loop, size_t axis) {
  int64_t moves = 1;
  for (size_t i = p.loops.size(); i-- > 0 && p.loops[i]->var.name() != loop;)
    if (uses_var(p.block->bindings[axis], p.loops[i]->var))
      moves *= extent_or(p.loops[i]->extent, 1);
  return std::min(moves, extent_or(p.block->axes[axis].extent, 1));
}

// Tiles that are added to in an iteration.
double TileRule::steps_inside(const std::string& loop) const {
  const BlockPlace p = s_.place(name_);
  double steps = 1;
  for (size_t i = p.loops.size(); i-- > 0 && p.loops[i]->var.name() != loop;)
    if (p.loops[i]->loop_kind == LoopKind::kSerial)
      steps *= static_cast<double>(extent_or(p.loops[i]->extent, 1));
  return steps;
}
// Of the multiply-adds of an iteration.
double TileRule::cycles_inside(const std::string& loop) const {
  return tile_.multiply * steps_inside(loop);
}

// Of one tile: rows that several panels pass over are read as fast as the first of these goes.
double TileRule::cycles_of_a_tile() const { return tile_.multiply * static_cast<double>(terms()); }

// Do all terms of a tile of rows lie side by side in its panel?
bool TileRule::terms_run_on(const BlockAccess& a) const {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (size_t r : reduce_)
    if (const int64_t n = extent_or(block_.axes[r].extent, 0); n != 1)
      steps.emplace_back(a.stride(r).value_or(0), n);
  std::sort(steps.begin(), steps.end());
  int64_t next = tile_.rows;
  return std::all_of(steps.begin(), steps.end(), [&](const auto& step) {
    return step.first == std::exchange(next, next * step.second);
  });
}

// Elements of a tile of rows, where those that an iteration reaches lie side by side without gaps; else 0.
int64_t TileRule::stretch_of_rows(const std::string& block, const BlockAccess& a, size_t row,
                                  const std::string& around) const {
  const BlockPlace p = s_.place(block);
  if (const Layout& layout = a.buffer->layout; !layout.empty() && layout.back().modulus != 0) {
    return layout.back().modulus == tile_.rows && terms_run_on(a) ? tile_.rows * terms() : 0;
  }
  int64_t in_a_row = 1;
  for (size_t k = 0; k < p.block->axes.size(); ++k) {
    const auto stride = a.stride(k);
    if (!stride) return 0;
    if (*stride != 0 && *stride < a.stride(row).value_or(0))
      in_a_row += *stride * (moves_inside(p, around, k) - 1);
  }
  return a.stride(row) == in_a_row ? tile_.rows * in_a_row : 0;
}

// A parameter, or a copy that is made before the product.
bool TileRule::is_there_before(const Buffer& b) const {
  const auto is_it = [&](const std::string& name) { return name == b->name; };
  return b->scope == Scope::kParam ||
         (std::any_of(copies_.begin(), copies_.end(),
                      [&](const Panels& p) { return is_it(p.copy()); }) &&
          std::none_of(staged_.begin(), staged_.end(), is_it));
}

void TileRule::bring_next(const std::string& block, const BlockAccess& a, const std::string& around,
                          int64_t elements, double cycles) {
  constexpr size_t kMost = 4;  // buffers
  // Bytes for each cycle of multiply-adds: what passes by more slowly is there in time by itself. And of a step.
  constexpr double kFast = 1, kMostBytes = 256;
  const int64_t bytes = elements * byte_size(a.buffer->dtype);
  // Steps that have no room for their share wait for memory anyway.
  const bool crowded = static_cast<double>(bytes) > kMostBytes * steps_inside(around);
  const bool seen = std::find(brought_.begin(), brought_.end(), a.buffer->name) != brought_.end();
  if (!is_there_before(a.buffer) || (a.write && streams_) || seen || crowded ||
      brought_.size() == kMost || bytes_of(*a.buffer) <= bytes_of_a_panel(s_.machine()) ||
      bytes == 0 || static_cast<double>(bytes) < kFast * cycles)
    return;
  brought_.push_back(a.buffer->name);
  if (!s_.decide_whether(name_ + ".next_" + a.buffer->name, true, Bits::kKept)) return;
  const auto kind = a.write                                        ? PrefetchKind::kWrite
                    : bytes <= bytes_beside_a_stream(s_.machine()) ? PrefetchKind::kNear
                                                                   : PrefetchKind::kOuter;
  if (s_.apply("prefetch_next", {name_, block, a.buffer->name, around},
               {elements, static_cast<int64_t>(kind), 1}))
    s_.note(block + ": what comes next of '" + a.buffer->name + "' is brought near meanwhile");
  else
    s_.lose_step();
}

void TileRule::prefetch() {
  if (rows_.empty() || outer_loops_ > 0 || matrix_) return;
  bring_stream();
  if (blocks_) {
    for (const BlockAccess& a : block_accesses(*s_.place(name_).block))
      if (!a.write) bring_next(name_, a, hoisted_.back(), stretch_of_terms(a), 0);
    return;
  }
  if (!hoisted_.empty()) return bring_next_pieces();
  bring_next_tiles();
  bring_next_place();
}

// Elements of a panel of columns that the blocks of a reduction go by in an iteration, where these lie side by side;
// else 0.
int64_t TileRule::piece_of_panel(const BlockAccess& a) const {
  const BlockPlace p = s_.place(name_);
  std::vector<std::array<int64_t, 3>> steps;  // stride, extent, of an iteration
  for (size_t r : reduce_)
    if (const int64_t n = extent_or(block_.axes[r].extent, 0); n != 1)
      steps.push_back({a.stride(r).value_or(0), n, moves_inside(p, hoisted_.back(), r)});
  std::sort(steps.begin(), steps.end());
  int64_t piece = width_of_panels(a), next = piece;
  for (const auto& [stride, extent, moves] : steps) {
    if (stride != next || (moves > 1 && piece != next)) return 0;
    piece *= moves;
    next *= extent;
  }
  return piece;
}

void TileRule::bring_next_pieces() {
  for (const BlockAccess& a : block_accesses(*s_.place(name_).block))
    if (!a.write && width_of_panels(a) == tile_.vectors * lanes_)
      bring_next(name_, a, hoisted_.back(), piece_of_panel(a), cycles_inside(hoisted_.back()));
}

void TileRule::bring_next_tiles() {
  const size_t row = parallel_[rows_[0]], column = parallel_[j_];
  std::vector<size_t> rows;
  for (size_t n : rows_) rows.push_back(parallel_[n]);
  const std::string tiles = loop_that_moves(rows), panels = loop_that_moves({column});
  if (tiles.empty()) return;
  for (const BlockAccess& a : block_accesses(*s_.place(name_).block))
    if (!a.write && !s_.is_constant(a.buffer) && a.stride(column) == 0)
      bring_next(name_, a, tiles, stretch_of_rows(name_, a, row, tiles), cycles_of_a_tile());
  for (const BlockAccess& a : block_accesses(*s_.place(e_).block))
    if (a.stride(j_) == 1)
      bring_next(e_, a, tiles, stretch_of_rows(e_, a, rows_[0], tiles), cycles_inside(tiles));
  if (panels.empty() || cycles_inside(panels) <= cycles_inside(tiles)) return;
  for (const BlockAccess& a : block_accesses(*s_.place(name_).block))
    if (!a.write && width_of_panels(a) == tile_.vectors * lanes_)
      bring_next(
          name_, a, panels,
          bytes_of_panels(a) / byte_size(a.buffer->dtype) / columns_ * tile_.vectors * lanes_,
          cycles_inside(panels));
}

}  // namespace tilewright::passes
