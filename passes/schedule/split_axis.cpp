// An axis of a block becomes two, as its loop does: the inverse of join_axes. An index that was a
// quotient or a remainder of the axis, as the channel of a group is, is one of its parts then, and
// rules see what moves with which.
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/analysis/accesses.h"
#include "passes/loops/loop_passes.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

Result<Kernel> split_axis(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  const auto axis = static_cast<size_t>(step.numbers[0]);
  const int64_t factor = step.numbers[1];
  if (axis >= b.axes.size()) return invalid("block '" + b.name + "' has not that axis");
  const BlockAxis& whole = b.axes[axis];
  if (factor < 1 || !is_multiple(whole.extent, factor))
    return invalid("factor " + std::to_string(factor) + " does not divide the axis of block '" +
                   b.name + "'");
  const std::string name = loop_of_axis(b, axis);
  if (name.empty()) return invalid("no loop of block '" + b.name + "' runs over the axis alone");

  const Var first(whole.var.name()), second(whole.var.name());
  const Var outer(step.names[1]), inner(step.names[2]);
  Block parted = b;
  parted.axes[axis] = {first, simplify(floordiv(whole.extent, factor)), whole.kind};
  parted.axes.push_back({second, Expr(factor), whole.kind});
  parted.bindings[axis] = outer;
  parted.bindings.push_back(inner);
  Ranges ranges;
  for (const BlockAxis& a : parted.axes) ranges.set(a.var, a.extent);
  const VarMap values{{whole.var.get(), first * Expr(factor) + second}};
  parted.body = simplify_loops(substitute(b.body, values), ranges);
  if (b.init) parted.init = simplify_loops(substitute(b.init, values), ranges);
  const Stmt body = replace_stmt(k.body, place.stmt, block(std::move(parted)));

  TW_ASSIGN(const For* split, find_loop(body, name));
  return with_body(k, replace_loop(body, split, [&](const For& f) {
                     const Expr index = outer * Expr(factor) + inner;
                     return for_loop(
                         outer, simplify(floordiv(f.extent, factor)),
                         for_loop(inner, Expr(factor), substitute(f.body, {{f.var.get(), index}}),
                                  LoopKind::kSerial),
                         f.loop_kind);
                   }));
}

}  // namespace tilewright::passes
