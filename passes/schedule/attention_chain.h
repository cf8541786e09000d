// The blocks of an attention, found in a kernel: what tile_attention rewrites, and what the rule
// that writes its step looks at.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// What an axis of a block runs over; those of the rows come first and are the same in all blocks.
enum class AttentionAxis : uint8_t { kRow, kKey, kOther };

// One block, with its results and what it does to them.
struct AttentionBlock {
  // Its axes are those of the loops around it, one by one; `of` says what each runs over.
  ir::Block block;
  ir::Buffer result;
  std::vector<AttentionAxis> of;
  // What is stored, or what a reduction adds or compares: without the partial result.
  ir::Expr value;
};

// S = f(Q K), m = rowmax(S), P = e^(S - g(m)), l = rowsum(P), O = P V, y = h(O, l), as blocks of one
// kernel over rows, each over whole tensors, and nothing else.
struct AttentionChain {
  // In order. `finish` has what belongs to rows alone, if anything, and then the results.
  AttentionBlock products, scores, largest, weights, total, values;
  std::vector<AttentionBlock> finish;
  // Extents; the last dimension of rows is the one that blocks of rows are taken from.
  std::vector<ir::Expr> rows;
  ir::Expr keys, depth, width;
};

// The chain around `weights`, the block that writes P. An error says what it lacks: a temporary that
// others read too, an access that is not the whole row's, a block of another kind.
Result<AttentionChain> find_attention(const ir::Kernel& kernel, const std::string& weights);

}  // namespace tilewright::passes
