// Two axes of a block become one, so that later steps see one contiguous axis instead of a quotient
// and a remainder. Nothing moves: the loop was joined before (collapse).
#include "ir/loops/blocks.h"
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What both bindings are quotient and remainder of, or null.
Expr divided(const Expr& outer, const Expr& inner, const Expr& extent) {
  const auto *q = outer.as<Binary>(), *r = inner.as<Binary>();
  const bool found = q && r && q->op == BinaryOp::kFloorDiv && r->op == BinaryOp::kFloorMod &&
                     same_expr(q->a, r->a) && can_prove_equal(q->b, extent) &&
                     can_prove_equal(r->b, extent);
  return found ? q->a : Expr();
}

}  // namespace

Result<Kernel> join_axes(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  const Block& b = *place.block;
  const auto outer = static_cast<size_t>(step.numbers[0]),
             inner = static_cast<size_t>(step.numbers[1]);
  if (outer >= b.axes.size() || inner >= b.axes.size() || outer == inner)
    return invalid("block '" + b.name + "' has not both axes");
  const BlockAxis &first = b.axes[outer], &second = b.axes[inner];
  if (first.kind != second.kind)
    return invalid("an axis of block '" + b.name + "' is " + std::string(name(first.kind)) +
                   ", the other " + std::string(name(second.kind)));
  const Expr both = divided(b.bindings[outer], b.bindings[inner], second.extent);
  if (!both) return invalid("no loop of block '" + b.name + "' runs over both axes");
  Block joined = b;
  const Var v(first.var.name());
  joined.axes[outer] = {v, simplify(first.extent * second.extent), first.kind};
  joined.bindings[outer] = both;
  joined.axes.erase(joined.axes.begin() + static_cast<long>(inner));
  joined.bindings.erase(joined.bindings.begin() + static_cast<long>(inner));
  const VarMap values{{first.var.get(), floordiv(v, second.extent)},
                      {second.var.get(), floormod(v, second.extent)}};
  joined.body = substitute(b.body, values);
  if (b.init) joined.init = substitute(b.init, values);
  return with_body(k, replace_stmt(k.body, place.stmt, block(std::move(joined))));
}

}  // namespace tilewright::passes
