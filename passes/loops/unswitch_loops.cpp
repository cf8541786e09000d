// Loop unswitching: hoists a Select whose condition is invariant in all loops out of them.
//
//    for i: A[i] = select(n == 1, B[0], B[i])    ->    if n == 1: for i: A[i] = B[0]
//                                                      else:      for i: A[i] = B[i]
//
// Such conditions compare extents. In vector code they would mask loads, and masked-off loads of addresses
// outside the buffer are slow. A parallel loop is not copied: each task contains the If.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Per nest. Each condition doubles the number of copies; the selects of others stay in the loops.
constexpr size_t kMostConditions = 3;

// Replaces each Select on one condition by the value for a known outcome.
class Decide : public Rewriter {
 public:
  Decide(const Expr& condition, bool holds) : condition_(condition), holds_(holds) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* s = e.as<Select>();
    if (s && same_expr(s->condition, condition_)) return rewrite(holds_ ? s->a : s->b);
    return Rewriter::rewrite(e);
  }

 private:
  const Expr& condition_;
  const bool holds_;
};

class UnswitchLoops : public Rewriter {
 public:
  explicit UnswitchLoops(const Stmt& kernel) {
    for_each_stmt(kernel, [&](const Stmt& s) {
      if (const auto* f = s.as<For>()) bound_.insert(f->var.get());
      if (const auto* l = s.as<Let>()) bound_.insert(l->var.get());
    });
  }
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f || f->loop_kind == LoopKind::kParallel) return Rewriter::rewrite(s);
    return unswitched(s, kMostConditions);
  }

 private:
  Stmt unswitched(const Stmt& loop, size_t depth) const {
    const Expr condition = depth > 0 ? uniform_condition(loop) : Expr();
    if (!condition) return loop;
    const Stmt then = Decide(condition, true).rewrite(loop),
               otherwise = Decide(condition, false).rewrite(loop);
    return if_then(condition, unswitched(then, depth - 1),
                   clone_with_fresh_names(unswitched(otherwise, depth - 1), "_else"));
  }
  // Returns the condition of a select in the loop that does not change there, or null.
  Expr uniform_condition(const Stmt& loop) const {
    Expr found;
    for_each_expr(loop, [&](const Expr& e) {
      const auto* s = e.as<Select>();
      if (!found && s && is_uniform(s->condition)) found = s->condition;
    });
    return found;
  }
  bool is_uniform(const Expr& e) const {
    bool uniform = e.lanes() == 1;
    for_each_expr(e, [&](const Expr& x) {
      uniform &= x.kind() != NodeKind::kLoad && !bound_.count(x.get());
    });
    return uniform;
  }

  std::unordered_set<const ExprNode*> bound_;  // variables of loops and lets
};

}  // namespace

Stmt unswitch_loops(const Stmt& s) { return UnswitchLoops(s).rewrite(s); }

}  // namespace tilewright::passes
