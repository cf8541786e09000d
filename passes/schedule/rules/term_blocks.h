// Products of long operands with few results, as the gradients of a layer's weights are: how their terms are
// taken in blocks.
#pragma once

#include <optional>
#include <vector>

#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// Of sum_k A[k, i] * B[k, j]; k may be several axes, as the pixels of images.
struct TermBlocks {
  std::vector<size_t> axes;  // that are summed over, outermost first; blocks are of the last ones
  size_t split = 0;          // the position of the one that is cut into blocks
  int64_t steps = 1;         // of that one in a block
  int64_t terms = 1;         // of a block
  bool usual = true;  // are they as many as pay, and no more than a tile reads of the first cache?
  int64_t rows = 1;   // with those of positions of a window that run on from them
  // Pieces of a block's columns for each way of the first cache that they fall into: of more than one, tiles of rows
  // read some from the second cache.
  double crowded = 0;
};

// Both operands pass by once then, block after block in the order in which they lie, while all sums wait in the second
// cache; nothing where these are too many, or where an operand does not lie with the rows, or columns, innermost.
std::optional<TermBlocks> term_blocks(const ScheduleState& s, const ir::Block& block);

}  // namespace tilewright::passes
