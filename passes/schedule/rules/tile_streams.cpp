// The tile rule: what streams from the second cache is brought into the first one some steps ahead, and results that
// no cache holds stream to memory.
#include "ir/loops/rewrite.h"
#include "passes/cost/machine_rates.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

// A panel that the first cache does not hold streams from the second one for each tile of rows. The processor's
// own prefetchers keep up with that, and the tile waits all the same now and then.
void TileRule::bring_stream() {
  if (dot_ || blocks_ || reduce_.empty() || row_count_ < 2 * tile_.rows) return;
  for (const BlockAccess& a : block_accesses(*s_.place(name_).block)) {
    if (a.write) continue;
    if (width_of_panels(a) == tile_.vectors * lanes_) bring_panel(a);
    if (a.stride(parallel_[j_]) == 0 && rows_of_panels() > 0) bring_line_of_pixels(a);
  }
}

// Some iterations ahead, of the loop that all of a row of the panel is read in.
void TileRule::bring_panel(const BlockAccess& a) {
  constexpr int64_t kAhead = 8;
  const int64_t width = width_of_panels(a);
  if (bytes_of_panels(a) / columns_ * width <= s_.machine().l1_bytes) return;
  std::string around;
  for (const For* f : s_.place(name_).loops)
    if (f->loop_kind == LoopKind::kSerial) around = f->var.name();
  const int64_t rows = slides_ ? extent_or(block_.axes[reduce_in_order().back()].extent, 1) : 1;
  if (s_.decide_whether(name_ + ".stream_" + a.buffer->name, true, Bits::kKept))
    s_.attempt("prefetch_next", {name_, name_, a.buffer->name, around},
               {rows * width, static_cast<int64_t>(PrefetchKind::kNear), kAhead});
}

// Rows of a window with strides do not go on from one line of pixels to the next, as prefetchers take them to.
void TileRule::bring_line_of_pixels(const BlockAccess& a) {
  const std::vector<size_t>& order = reduce_in_order();
  if (order.size() < 2 || !hoisted_.empty() || slides_) return;
  const size_t pixel = order.back(), line = order[order.size() - 2];
  const auto step = a.stride(pixel), next = a.stride(line);
  const int64_t pixels = extent_or(block_.axes[pixel].extent, 1);
  if (!step || !next || *step <= 0 || *step * pixels == *next || pixels == 1) return;
  if (s_.decide_whether(name_ + ".line_" + a.buffer->name, true, Bits::kKept))
    s_.attempt("prefetch_next",
               {name_, name_, a.buffer->name, reduce_loops_[reduce_loops_.size() - 2]},
               {*step * (pixels - 1) + tile_.rows, static_cast<int64_t>(PrefetchKind::kNear), 1});
}

// Are results stored in whole lines, tile by tile? Half a line that waits for the next tile is written by itself.
bool TileRule::fills_lines(const BlockAccess& result) const {
  const int64_t line = kCacheLine / byte_size(result.buffer->dtype);
  if (tile_.vectors * lanes_ % line != 0 || result.stride(j_) != 1) return false;
  for (size_t axis = 0; axis < result.strides.size(); ++axis)
    if (axis != j_ && result.stride(axis).value_or(1) % line != 0) return false;
  return true;
}

// Where memory is the roof, not multiply-adds, lines of results that are fetched to be written are up to half of what
// a product moves.
void TileRule::stream_results() {
  const BlockAccess result = block_accesses(*s_.place(e_).block).back();
  if (result.buffer->scope != Scope::kParam || !exceeds_outer_cache(s_, *result.buffer) ||
      !fills_lines(result))
    return;
  double terms = 1, bytes = 2 * static_cast<double>(bytes_of(*result.buffer));
  for (const BlockAxis& a : block_.axes) terms *= static_cast<double>(extent_or(a.extent, 1));
  for (const std::string& block : {name_, e_})
    for (const BlockAccess& a : block_accesses(*s_.place(block).block))
      if (!a.write && a.buffer->scope == Scope::kParam)
        bytes += static_cast<double>(bytes_of(*a.buffer));
  const Rates rates = rates_of(s_.machine(), s_.machine().threads);
  const bool memory_bound = bytes / rates.memory > 2 * terms / rates.flops;
  const auto streams = [&] { return s_.apply("stream", {e_}); };
  if (!s_.would_go(streams) || !s_.decide_whether(e_ + ".stream", memory_bound, Bits::kKept))
    return;
  streams_ = streams();
  if (streams_)
    s_.note(e_ + ": memory is slower than the multiply-adds: the result is stored past the caches");
  else
    s_.lose_step();
}

}  // namespace tilewright::passes
