// As the tile rule decides (TileRule::find_axes, decide_shared), of a block whose operands lie as they did.
#include "passes/schedule/rules/rows_of_tiles.h"

#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/analysis/accesses.h"
#include "passes/cost/tile_cost.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The operand that all rows of a tile share, if these are along the axis: of those that share it, the one by
// which results move least.
const BlockAccess* shared_by(const std::vector<BlockAccess>& accesses, const Block& block,
                             size_t axis) {
  const BlockAccess& result = accesses.back();
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == result.buffer || a.stride(axis) != 0) continue;
    for (size_t k = 0; k < block.axes.size(); ++k)
      if (k != axis && is_parallel(block.axes[k]) && a.stride(k) == 0 &&
          stride_or_far(result, k) < stride_or_far(result, axis))
        return nullptr;
    return &a;
  }
  return nullptr;
}

// Columns of the panels in which an operand lies, or will lie; 0: in none.
int64_t panel_of(const BlockAccess& a, const std::vector<Panels>& copies) {
  for (const Panels& p : copies)
    if (p.buffer == a.buffer->name) return p.width;
  const Layout& layout = a.buffer->layout;
  return layout.empty() ? 0 : layout.back().modulus;
}

class WithoutAddresses : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    return l ? load(l->buffer, std::vector<Expr>(l->indices.size(), Expr(0)))
             : Rewriter::rewrite(e);
  }
  Stmt rewrite(const Stmt& s) override {
    const auto* st = s.as<Store>();
    if (!st) return Rewriter::rewrite(s);
    forget();
    return store(st->buffer, std::vector<Expr>(st->indices.size(), Expr(0)), rewrite(st->value));
  }
};

}  // namespace

bool asks_where(const Block& block, size_t axis) {
  bool found = false;
  for_each_expr(WithoutAddresses().rewrite(block.body),
                [&](const Expr& e) { found |= e.same_as(block.axes[axis].var); });
  return found;
}

bool is_parallel(const BlockAxis& axis) {
  return axis.kind == AxisKind::kParallel && !is_one(axis.extent);
}

int64_t rows_of_tiles(const MachineDescription& machine, const Block& block, size_t axis,
                      const std::vector<Panels>& copies) {
  const auto accesses = block_accesses(block);
  const BlockAccess& result = accesses.back();
  const BlockAccess* shared = shared_by(accesses, block, axis);
  if (!shared) return 0;
  const int bytes = byte_size(result.buffer->dtype);
  TileSizes sizes{
      .rows = extent_or(block.axes[axis].extent, 0), .columns = 0, .steps = 1, .bytes = bytes};
  int sums = 0;
  for (size_t k = 0; k < block.axes.size(); ++k) {
    const int64_t extent = extent_or(block.axes[k].extent, 0);
    if (block.axes[k].kind == AxisKind::kReduce) {
      sizes.steps = std::min<int64_t>(sizes.steps * extent, int64_t{1} << 30);
      sums += extent != 1;
    } else if (is_parallel(block.axes[k]) && shared->stride(k) != 0 && result.stride(k) == 1) {
      sizes.columns = extent;
    }
  }
  if (sizes.rows == 0 || sizes.columns == 0) return 0;
  sizes.lanes = lanes_for(machine, bytes, sizes.columns);
  if (sums == 1) sizes.depth = sizes.steps;
  return tile_with(machine, sizes, panel_of(*shared, copies)).rows;
}

}  // namespace tilewright::passes
