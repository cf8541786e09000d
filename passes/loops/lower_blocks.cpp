// Blocks give way to loops and conditions: bindings are substituted for axes, and what a block
// promises about its axes has been used by then. From here on there are only loops, as in a C
// program.
#include "ir/loops/blocks.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class LowerBlocks : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* b = s.as<Block>();
    if (!b) return Rewriter::rewrite(s);
    VarMap values;
    // The condition "first step of the reduction": all of its axes at 0.
    Expr first;
    for (size_t i = 0; i < b->axes.size(); ++i) {
      values[b->axes[i].var.get()] = b->bindings[i];
      if (b->axes[i].kind != AxisKind::kReduce) continue;
      Expr at_zero = eq(b->bindings[i], Expr(0));
      first = first ? logical_and(first, at_zero) : at_zero;
    }
    auto guarded = [&](const Expr& condition, Stmt s) {
      return condition ? if_then(substitute(condition, values), std::move(s)) : s;
    };
    Stmt body = rewrite(substitute(b->body, values));
    if (!b->init) return guarded(b->predicate, body);
    Stmt init = rewrite(substitute(b->init, values));
    if (first) init = if_then(first, init);
    const Expr own = init_predicate(*b);
    if (own.same_as(b->predicate)) return guarded(b->predicate, seq({init, body}));
    return seq({guarded(own, init), guarded(b->predicate, body)});
  }
};

}  // namespace

Stmt lower_blocks(const Stmt& s) { return LowerBlocks().rewrite(s); }

}  // namespace tilewright::passes
