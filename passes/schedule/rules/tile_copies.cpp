// The tile rule, of products whose operands are known at the run alone: what a tile would read across rows of memory is
// copied first, in the order in which tiles read it.
//
// Copied into panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008) they are
// one stream, and a copy costs as much as the product with a few dozen rows or columns (cost/panel_width.h). Of the
// steps of an ordered axis (a recurrent layer's) one copy before them all serves each; a temporary that was made
// before them is laid out that way at once. Matrices that are values of the graph were copied there
// (graph/pack_operands.cpp), where several products share the copy.
//
// What is larger than the second cache is copied by the tasks that read it, a part that stays there at a time: it
// passes by once, instead of being read, written and read again.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/join_terms.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Blocks of terms that run on from one line of pixels to the next, whose columns no part of a copy holds: do these fall
// into so few sets of the first cache that panels are better?
bool are_crowded_when_joined(ScheduleState& s, const std::string& block) {
  constexpr double kCrowded = 2;
  return s.would_go([&] {
    join_terms(s, block);
    const auto joined = term_blocks(s, *s.place(block).block);
    return joined && joined->usual && joined->crowded > kCrowded;
  });
}

}  // namespace

std::vector<Panels> lay_out_operands(ScheduleState& s, const std::string& block) {
  const BlockPlace place = s.place(block);
  if (place.loops.size() < place.block->axes.size()) return {};
  const bool in_a_step = place.loops.size() > place.block->axes.size();
  const auto blocks = in_a_step ? std::nullopt : term_blocks(s, *place.block);
  if (blocks && s.decide_whether(block + ".pass_once",
                                 blocks->usual || !are_crowded_when_joined(s, block), Bits::kKept))
    return {};
  std::vector<Panels> panels = copied_operands(s, place);
  if (panels.empty() || !s.decide_whether(block + ".copy_operands", true, Bits::kKept)) return {};
  const bool done = s.all_or_nothing([&] {
    for (const Panels& p : panels)
      if ((!p.is_made_here && !s.apply("cache_read", {block, p.buffer, p.copy()})) ||
          !s.apply("transform_layout", {p.copy()}, layout_of(p)))
        return false;
    return true;
  });
  if (!done) return {};
  for (const Panels& p : panels)
    s.note(block + ": '" + p.buffer + (p.is_made_here ? "' lies" : "' is copied") +
           " in panels of " + std::to_string(p.width) + ", as a tile reads it");
  std::erase_if(panels, [](const Panels& p) { return p.is_made_here; });
  return panels;
}

// The outermost loop in an iteration of which the part of a copy that it reads stays in the second cache; empty: there
// is none, or iterations of it read the same.
std::string TileRule::loop_to_stage_at(const Panels& p) const {
  const BlockPlace place = s_.place(name_);
  for (const BlockAccess& a : block_accesses(*place.block)) {
    if (a.buffer->name != p.copy()) continue;
    const int64_t bytes = bytes_of(*a.buffer), room = bytes_of_a_panel(s_.machine());
    if (bytes <= room) return "";  // it stays there as a whole
    int64_t parts = 1;
    std::string found;
    for (const For* f : place.loops) {
      if (!found.empty() && f->loop_kind == LoopKind::kParallel) return "";
      if (!found.empty()) continue;
      bool moves = false;
      for (size_t k = 0; k < a.strides.size(); ++k)
        moves |= a.stride(k) != 0 && uses_var(place.block->bindings[k], f->var);
      const auto extent = as_int(f->extent);
      if (!moves || !extent) return "";
      parts *= *extent;
      if (bytes <= room * parts) found = f->var.name();
    }
    return found;
  }
  return "";
}

// Not where iterations would copy much that others copy, too, or take a few elements of each line.
bool TileRule::copy_inside(const Panels& p, const std::string& around) {
  constexpr double kMostCopied = 1.2;
  constexpr int64_t kFewestBytes = 256;
  if (!stage_copy(s_, p, around)) return false;
  const BlockPlace copy = s_.place(p.block());
  const auto inner = static_cast<size_t>(p.transposes ? p.across.back() : p.dim);
  const int64_t piece = moves_inside(copy, around, inner);
  if (piece < extent_or(copy.block->axes[inner].extent, kUnknownExtent) &&
      piece * byte_size(copy.block->body.as<Store>()->buffer->dtype) < kFewestBytes)
    return false;
  double copied = 1;
  for (const For* f : copy.loops) copied *= static_cast<double>(extent_or(f->extent, 1));
  const Buffer& panels = copy.block->body.as<Store>()->buffer;
  return copied * byte_size(panels->dtype) <= kMostCopied * static_cast<double>(bytes_of(*panels));
}

bool TileRule::stage(const Panels& p) {
  const std::string around = outer_loops_ > 0 ? "" : loop_to_stage_at(p);
  if (around.empty() || !s_.would_go([&] { return copy_inside(p, around); }) ||
      !s_.decide_whether(loop("stage_") + p.buffer, true, Bits::kKept) || !copy_inside(p, around))
    return false;
  staged_.push_back(p.copy());
  s_.note(name_ + ": '" + p.buffer + "' is copied by the tasks that read it");
  bring_next_part(p, around);
  return true;
}

// What the next iteration copies comes from memory while this one multiplies. Not pieces of rows that lie a power of
// two apart: they fall into few sets of the second cache.
void TileRule::bring_next_part(const Panels& p, const std::string& around) {
  constexpr int64_t kPage = 4096;
  const size_t down = static_cast<size_t>(p.across.back()), across = static_cast<size_t>(p.dim),
               inner = p.transposes ? down : across, outer = p.transposes ? across : down;
  for (const BlockAccess& a : block_accesses(*s_.place(p.block()).block)) {
    const auto apart = a.stride(outer);
    const auto is_of_one = [&](int d) { return is_one(a.buffer->shape[static_cast<size_t>(d)]); };
    if (a.write || bytes_of(*a.buffer) <= s_.machine().l2_bytes || !apart || a.stride(inner) != 1 ||
        !std::all_of(p.across.begin(), p.across.end() - 1, is_of_one))
      continue;
    const BlockPlace copy = s_.place(p.block());
    const int64_t elements = moves_inside(copy, around, inner),
                  rows = moves_inside(copy, around, outer);
    if (elements * byte_size(a.buffer->dtype) < kPage) continue;
    if (s_.decide_whether(loop("next_") + p.buffer, true, Bits::kKept))
      s_.attempt("prefetch_rows", {name_, p.block(), p.buffer, around}, {elements, rows, *apart});
  }
}

bool TileRule::make_copies() {
  if (blocks_ && outer_loops_ == 0 && !rows_.empty()) copy_columns_of_blocks();
  return std::all_of(copies_.begin(), copies_.end(),
                     [&](const Panels& p) { return stage(p) || schedule_copy(s_, p); });
}

std::optional<Taken> take_tile(ScheduleState& s, const Work& work) {
  const std::vector<Panels> copies = lay_out_operands(s, work.block);
  const auto take = [&](const std::string& epilogue) -> std::optional<Taken> {
    TileRule rule(s, work, epilogue, copies);
    if (!rule.run()) return std::nullopt;
    Taken taken{.also = rule.followers(), .before = ""};
    taken.also.insert(epilogue);
    return taken;
  };
  if (auto taken = take(work.epilogue)) return taken;
  if (!work.epilogue.empty())
    if (auto taken = take("")) return taken;
  for (const Panels& p : copies)
    if (!schedule_copy(s, p)) s.lose_step();
  return std::nullopt;
}

}  // namespace tilewright::passes
