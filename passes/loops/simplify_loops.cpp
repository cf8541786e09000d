// Simplification with the ranges of the loops around, dead loops and decided branches removed. Runs
// after most passes that substitute into indices.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class SimplifyLoops : public Rewriter {
 public:
  explicit SimplifyLoops(Ranges ranges) : ranges_(std::move(ranges)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return simplify(e, ranges_); }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* f = s.as<For>()) return rewrite_for(s, *f);
    if (const auto* i = s.as<If>()) return rewrite_if(s, *i);
    return Rewriter::rewrite(s);
  }

 private:
  Stmt rewrite_for(const Stmt& s, const For& f) {
    Expr extent = simplify(f.extent, ranges_);
    if (auto n = as_int(extent); n && *n <= 0) return seq({});
    if (is_one(extent)) return rewrite(substitute(f.body, {{f.var.get(), Expr(0)}}));
    ranges_.set(f.var, extent);
    Stmt body = rewrite(f.body);
    if (is_empty(body)) return body;
    if (body.same_as(f.body) && extent.same_as(f.extent)) return s;
    return for_loop(f.var, extent, body, f.loop_kind);
  }
  Stmt rewrite_if(const Stmt& s, const If& i) {
    Expr c = simplify(i.condition, ranges_);
    if (auto known = as_int(c))
      return *known ? rewrite(i.then) : i.otherwise ? rewrite(i.otherwise) : seq({});
    Stmt then = rewrite(i.then), otherwise = i.otherwise ? rewrite(i.otherwise) : Stmt();
    if (c.same_as(i.condition) && then.same_as(i.then) && otherwise.same_as(i.otherwise)) return s;
    return if_then(c, then, otherwise);
  }
  static bool is_empty(const Stmt& s) { return s.as<Seq>() && s.as<Seq>()->stmts.empty(); }
  Ranges ranges_;
};

}  // namespace

Stmt simplify_loops(const Stmt& s, const Ranges& ranges) {
  return SimplifyLoops(ranges).rewrite(s);
}

}  // namespace tilewright::passes
