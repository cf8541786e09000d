#include "ir/loops/blocks.h"

#include <unordered_set>

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

Expr keep_conjuncts(const Expr& condition, const std::function<bool(const Expr&)>& keep) {
  const auto* both = condition.as<Binary>();
  if (!both || both->op != BinaryOp::kAnd) return keep(condition) ? condition : nullptr;
  Expr a = keep_conjuncts(both->a, keep), b = keep_conjuncts(both->b, keep);
  if (a.same_as(both->a) && b.same_as(both->b)) return condition;
  return !a ? b : !b ? a : logical_and(a, b);
}

// Conjuncts over loops that feed reduce axes alone are dropped, others stay.
Expr init_predicate(const Block& block) {
  if (!block.predicate) return nullptr;
  std::unordered_set<const ExprNode*> reduce, other;
  for (size_t i = 0; i < block.axes.size(); ++i) {
    auto& fed = block.axes[i].kind == AxisKind::kReduce ? reduce : other;
    fed.insert(block.axes[i].var.get());
    for (const Var& v : free_vars_in_order(block.bindings[i])) fed.insert(v.get());
  }
  return keep_conjuncts(block.predicate, [&](const Expr& conjunct) {
    for (const Var& v : free_vars_in_order(conjunct))
      if (reduce.count(v.get()) && !other.count(v.get())) return false;
    return true;
  });
}

}  // namespace tilewright::ir
