// The tile rule: results that are made of those of the epilogue, element by element, as a backward
// pass keeps them (what an activation is made of beside the activation), are stored from the same
// vectors. Each pass over them would read what has left the caches meanwhile.
#include <algorithm>

#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Is an element of the one what the other's block stores or reads in the same iteration?
bool moves_alike(const BlockAccess& a, const BlockAccess& b, size_t axes) {
  if (a.buffer != b.buffer) return false;
  for (size_t k = 0; k < axes; ++k)
    if (!a.strides[k] || !b.strides[k] || !can_prove_equal(a.strides[k], b.strides[k]))
      return false;
  return true;
}

}  // namespace

bool TileRule::follows(const BlockPlace& p, const std::vector<BlockAccess>& stored) const {
  const Block& b = *p.block;
  const size_t axes = epilogue_.axes.size();
  if (kind_of(b) != Applies::kPointwise || p.loops.size() != axes || b.axes.size() != axes)
    return false;
  for (size_t k = 0; k < axes; ++k)
    if (loop_of_axis(b, k).empty() || !can_prove_equal(b.axes[k].extent, epilogue_.axes[k].extent))
      return false;
  const auto accesses = block_accesses(b);
  return std::any_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
    return !a.write && std::any_of(stored.begin(), stored.end(),
                                   [&](const BlockAccess& s) { return moves_alike(a, s, axes); });
  });
}

void TileRule::bring_followers() {
  std::vector<BlockAccess> stored{block_accesses(*s_.place(e_).block).back()};
  for (const std::string& n : block_names(s_)) {
    const BlockPlace p = s_.place(n);
    if (n == e_ || !follows(p, stored)) continue;
    const Block b = *p.block;
    const BlockAccess result = block_accesses(b).back();
    const auto join = [&] {
      return order_loops(n, b, false) && s_.apply("fuse_loops", {n, name(e_, "jc")}) &&
             annotate(s_, "vectorize", name(n, "jv"));
    };
    if (!s_.would_go(join) || !s_.decide_whether(n + ".on_tile", true, Bits::kKept)) continue;
    if (s_.all_or_nothing(join)) {
      followers_.insert(n);
      stored.push_back(result);
      s_.note(n + ": stored from the tile of '" + name_ + "'");
    }
  }
}

}  // namespace tilewright::passes
