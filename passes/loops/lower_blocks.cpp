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
    Expr first;
    for (size_t i = 0; i < b->axes.size(); ++i) {
      values[b->axes[i].var.get()] = b->bindings[i];
      if (b->axes[i].kind != AxisKind::kReduce) continue;
      Expr at_zero = eq(b->bindings[i], Expr(0));
      first = first ? logical_and(first, at_zero) : at_zero;
    }
    Stmt body = substitute(b->body, values);
    if (b->init)
      body = seq({first ? if_then(first, substitute(b->init, values)) : substitute(b->init, values),
                  body});
    body = rewrite(body);
    return b->predicate ? if_then(substitute(b->predicate, values), body) : body;
  }
};

}  // namespace

Stmt lower_blocks(const Stmt& s) { return LowerBlocks().rewrite(s); }

}  // namespace tilewright::passes
