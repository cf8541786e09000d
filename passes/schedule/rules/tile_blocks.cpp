// The tile rule, of long operands with few results: blocks of terms go around panels and rows.
//
//    for kb:                                        block of terms, which passes by once
//      for jo: for io:                              panel of columns, rows
//        for k: for ii: for jc: jv                  micro-kernel, into sums that wait in the second cache
//
// Neither operand is copied: a block of both stays in the second cache while all tiles read of it, and the next one
// is brought there meanwhile. Where only a part of the sums has room there, groups of panels (jb) go around that.
#include <algorithm>

#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

void TileRule::decide_blocks() {
  if (outer_loops_ > 0 || dot_ != 0) return;
  blocks_ = term_blocks(s_, block_);
  std::vector<size_t> order = reduce_in_order();
  std::erase_if(order, [&](size_t r) { return is_one(block_.axes[r].extent); });
  if (blocks_ && blocks_->axes != order) blocks_.reset();
  if (blocks_)
    s_.note(name_ + ": blocks of " + std::to_string(blocks_->terms) +
            " terms pass by once, while all sums wait in the second cache");
}

// As many as keep their sums there, and leave each thread one.
void TileRule::decide_groups() {
  if (!blocks_) return;
  const int64_t width = tile_.vectors * lanes_, all = (columns_ + width - 1) / width,
                most = std::max<int64_t>(blocks_->most_columns / width, 1);
  int64_t places = 1;
  for (size_t n : outer_) places *= extent_or(block_.axes[parallel_[n]].extent, 1);
  const int64_t tasks = (std::max(s_.machine().threads, 1) + places - 1) / places,
                groups = std::min(std::max((all + most - 1) / most, tasks), all);
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
  int64_t elements = 1;
  for (size_t n : parallel_)
    if (a.stride(n) == 1) elements = extent_or(block_.axes[n].extent, 0);
  if (group_ > 0 && group_ * tile_.vectors * lanes_ < columns_) return 0;
  for (size_t n = blocks_->axes.size(); n-- > blocks_->split;) {
    if (a.stride(blocks_->axes[n]) != elements) return 0;
    elements *=
        n == blocks_->split ? blocks_->steps : extent_or(block_.axes[blocks_->axes[n]].extent, 0);
  }
  return elements;
}

}  // namespace tilewright::passes
