// Strip mining: for v in 0..n becomes for o in 0..ceil(n/f), for i in 0..f with v = o f + i, and a
// predicate where f does not divide n. partition_tails removes that predicate from the main part.
#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Adds a condition to the outermost blocks of a statement; inside, it is named through a fresh look
// at the loops only.
class AddPredicate : public Rewriter {
 public:
  explicit AddPredicate(Expr condition) : condition_(std::move(condition)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* b = s.as<Block>();
    if (!b) return Rewriter::rewrite(s);
    Block copy = *b;
    copy.predicate = b->predicate ? logical_and(b->predicate, condition_) : condition_;
    return block(std::move(copy));
  }

 private:
  Expr condition_;
};

}  // namespace

Result<Kernel> split(const Kernel& k, const Step& step) {
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[0]));
  const int64_t factor = step.numbers[0];
  if (factor < 1) return invalid("factor " + std::to_string(factor));
  Var outer(step.names[1]), inner(step.names[2]);
  const Expr index = outer * Expr(factor) + inner;
  const bool exact = factor == 1 || is_multiple(loop->extent, factor);
  return with_body(k, replace_loop(k.body, loop, [&](const For& f) {
                     Stmt body = substitute(f.body, {{f.var.get(), index}});
                     if (!exact) body = AddPredicate(index < f.extent).rewrite(body);
                     return for_loop(outer, simplify(ceildiv(f.extent, factor)),
                                     for_loop(inner, Expr(factor), body, LoopKind::kSerial),
                                     f.loop_kind);
                   }));
}

}  // namespace tilewright::passes
