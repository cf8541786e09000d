// GEMM by Dots: one row of `columns` sums at a time, one group of terms after the other.
#include "ir/loops/dot_tile.h"

namespace tilewright::ir {

Stmt as_dots(const DotTile& tile) {
  const Var row("row"), group("group");
  const int terms = dot_terms(tile.a.buffer->dtype), columns = static_cast<int>(tile.columns);
  const std::vector<Expr> sums{ramp(tile.sum.index + row * tile.sum.stride, Expr(1), columns)};
  const Expr a = load(tile.a.buffer,
                      {ramp(tile.a.index + row * tile.a.stride + group * Expr(terms), 1, terms)}),
             b = load(tile.b.buffer,
                      {ramp(tile.b.index + group * tile.b.stride, Expr(1), terms * columns)});
  const Stmt step = store(tile.sum.buffer, sums,
                          dot(load(tile.sum.buffer, sums), broadcast(a, terms * columns), b));
  return for_loop(row, tile.rows, for_loop(group, tile.groups, step));
}

}  // namespace tilewright::ir
