// The tile rule, of long operands with few results: blocks of terms go around panels and rows.
//
//    for kb:                                        block of terms, which passes by once
//      for jo: for io:                              panel of columns, rows
//        for k: for ii: for jc: jv                  micro-kernel, into sums that wait in the second cache
//
// Neither operand is copied as a whole: a block of both stays in the second cache while all tiles read of it, and the
// next one is brought there meanwhile. Threads without a run of their own share out groups of panels (jb).
#include <algorithm>

#include "passes/schedule/rules/join_terms.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

// Images whose pixels run on are one row of terms, where extents of their own make no block of the usual length.
void TileRule::join_terms_of_blocks() {
  const auto apart = term_blocks(s_, block_);
  if (apart && apart->usual) return;
  s_.all_or_nothing([&] {
    join_terms(s_, name_);
    const auto joined = term_blocks(s_, *s_.place(name_).block);
    return joined && joined->usual;
  });
  block_ = *s_.place(name_).block;
}

void TileRule::decide_blocks() {
  std::vector<size_t> order = reduce_in_order();
  std::erase_if(order, [&](size_t r) { return is_one(block_.axes[r].extent); });
  if (blocks_ && blocks_->axes != order) blocks_.reset();
  if (blocks_)
    s_.note(name_ + ": blocks of " + std::to_string(blocks_->terms) +
            " terms pass by once, while all sums wait in the second cache");
}

// As many as leave each thread one.
void TileRule::decide_groups() {
  if (!blocks_) return;
  const int64_t width = tile_.vectors * lanes_, all = (columns_ + width - 1) / width;
  int64_t places = 1;
  for (size_t n : outer_) places *= extent_or(block_.axes[parallel_[n]].extent, 1);
  const int64_t tasks = (std::max(s_.machine().threads, 1) + places - 1) / places,
                groups = std::min(tasks, all);
  if (groups > 1 || outer_.empty()) group_ = (all + groups - 1) / groups;
}

bool TileRule::block_terms() {
  size_t k = 0;
  for (; reduce_order_[k] != blocks_->axes[blocks_->split]; ++k)
    hoisted_.push_back(reduce_loops_[k]);
  if (blocks_->steps == extent_or(block_.axes[reduce_order_[k]].extent, 1)) return true;
  hoisted_.push_back(reduce_loops_[k]);
  if (blocks_->steps == 1) return true;
  const std::string around = loop("kb"), inside = loop("ki");
  if (!s_.apply("split", {reduce_loops_[k], around, inside}, {blocks_->steps})) return false;
  hoisted_.back() = reduce_loops_[k] = around;
  reduce_loops_.insert(reduce_loops_.begin() + static_cast<long>(k) + 1, inside);
  return true;
}

int64_t TileRule::stretch_of_terms(const BlockAccess& a) const {
  constexpr double kMostSkipped = 1.6;  // of what is read, with what lies between
  const bool in_groups = group_ > 0 && group_ * tile_.vectors * lanes_ < columns_;
  if (in_groups && a.stride(parallel_[j_]) != 0) return 0;
  int64_t span = 1, read = 1;
  for (size_t k = 0; k < block_.axes.size(); ++k) {
    const bool summed = block_.axes[k].kind == AxisKind::kReduce;
    const auto position = std::find(blocks_->axes.begin(), blocks_->axes.end(), k);
    const auto n = static_cast<size_t>(position - blocks_->axes.begin());
    const bool outer =
        std::any_of(outer_.begin(), outer_.end(), [&](size_t o) { return parallel_[o] == k; });
    if (outer || (summed && n < blocks_->split)) continue;
    const int64_t extent =
                      n == blocks_->split ? blocks_->steps : extent_or(block_.axes[k].extent, 1),
                  stride = a.stride(k).value_or(0);
    span += stride * (extent - 1);
    if (stride != 0) read *= extent;
  }
  return static_cast<double>(span) <= kMostSkipped * static_cast<double>(read) ? span : 0;
}

// A panel of columns of a block lies side by side then, while all tiles of rows pass over it.
void TileRule::copy_columns_of_blocks() {
  const size_t column = parallel_[j_];
  for (const BlockAccess& a : block_accesses(*s_.place(name_).block)) {
    const std::vector<int> dims = order_in_memory(*a.buffer);
    if (a.write || a.buffer->scope != Scope::kParam || a.stride(column) != 1 || dims.empty())
      continue;
    Panels p{.buffer = a.buffer->name,
             .of_columns = true,
             .dim = dims.back(),
             .across = {dims.begin(), dims.end() - 1},
             .width = tile_.vectors * lanes_,
             .lanes = lanes_};
    const int64_t stretch = stretch_of_terms(a);
    const auto copy = [&] {
      if (!s_.apply("cache_read", {name_, p.buffer, p.copy()}) ||
          !s_.apply("transform_layout", {p.copy()}, layout_of(p)) || !stage_copy(s_, p, loop("jo")))
        return false;
      int64_t copied = 1;
      for (size_t k = 0; k < dims.size(); ++k)
        copied *= moves_inside(s_.place(p.block()), loop("jo"), k);
      return copied == p.width * blocks_->terms;
    };
    if (!s_.would_go(copy) ||
        !s_.decide_whether(loop("copy_columns"), blocks_->crowded > 1, Bits::kKept) || !copy())
      return;
    s_.note(name_ +
            ": columns of a block are copied, as they fall into few sets of the first cache");
    for (const BlockAccess& from : block_accesses(*s_.place(p.block()).block))
      if (!from.write) bring_next(p.block(), from, hoisted_.back(), stretch, 0);
    return;
  }
}

}  // namespace tilewright::passes
