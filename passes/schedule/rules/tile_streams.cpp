// The tile rule: what streams from the second cache is brought into the first one some steps ahead.
#include "ir/loops/rewrite.h"
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

}  // namespace tilewright::passes
