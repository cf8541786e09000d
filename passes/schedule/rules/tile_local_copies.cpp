// The tile rule: local copies of what comes from memory in pieces.
//
// Where the reduction is blocked, a block of an operand's rows is read again for each tile of rows:
// of each row of memory a piece, as wide as the tile. Pieces of rows that lie a power of two apart
// fall into few sets of the first cache and push one another out. Copied side by side first, once
// for all tiles of rows, they stay in it.
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

bool TileRule::copies_pay() const {
  constexpr int64_t kFewestTiles = 6;  // of rows that share a copy
  const auto rows = as_int(row_extent_);
  return !hoisted_.empty() && hoisted_.size() < reduce_loops_.size() && outer_loops_ == 0 &&
         dot_ == 0 && rows.value_or(0) >= kFewestTiles * tile_.rows;
}

void TileRule::copy_pieces() {
  if (!copies_pay()) return;
  for (const BlockAccess& a : block_accesses(block_)) {
    if (a.write || a.buffer->scope != Scope::kParam || s_.is_constant(a.buffer) ||
        a.stride(parallel_[j_]) != 1)
      continue;
    const auto by_term = a.stride(reduce_in_order().back());
    if (!by_term || *by_term <= tile_.vectors * lanes_) continue;
    std::vector<int> dims = order_in_memory(*a.buffer);
    if (dims.empty() || !s_.decide_whether(loop("copy_pieces"), true, Bits::kKept)) continue;
    const std::string local = a.buffer->name + "_local", copy = local + "_copy";
    std::vector<int64_t> layout;
    for (int d : dims) layout.insert(layout.end(), {d, 1, 0});
    const auto of_dim = [&](int d) { return copy + ".s" + std::to_string(d); };
    std::vector<std::string> order;
    for (int d : dims) order.push_back(of_dim(d));
    const std::string inner = order.back();
    order.back() = copy + ".o";
    order.push_back(copy + ".v");
    const bool done = s_.all_or_nothing([&] {
      return s_.apply("cache_read", {name_, a.buffer->name, local}) &&
             s_.apply("transform_layout", {local}, layout) &&
             s_.apply("compute_at", {copy, hoisted_.back()}) &&
             s_.apply("split", {inner, copy + ".o", copy + ".v"}, {lanes_}) &&
             s_.apply("reorder", order) && s_.apply("vectorize", {copy + ".v"});
    });
    if (done) {
      s_.note(name_ + ": pieces of rows of '" + a.buffer->name +
              "' are copied side by side, once for all tiles of rows");
      prefetch_largest(s_, {copy}, kRowsAhead);
    }
    return;
  }
}

}  // namespace tilewright::passes
