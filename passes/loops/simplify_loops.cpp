// Simplification with the ranges of the loops around, dead loops and decided branches removed. Runs
// after most passes that substitute into indices.
#include <vector>

#include "ir/loops/blocks.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A condition `index < bound` of an index that is not negative.
struct Bounded {
  Expr index;
  int64_t bound = 0;
};

// (n * k + index) / n is k where index < n: an address of what is masked off is nobody's.
class SimplifyQuotients : public Rewriter {
 public:
  explicit SimplifyQuotients(const std::vector<Bounded>& known) : known_(known) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const Expr x = Rewriter::rewrite(e);
    const auto* q = x.as<Binary>();
    const auto n = q && x.dtype() == DType::kInt64 ? as_int(q->b) : std::nullopt;
    if (!n || (q->op != BinaryOp::kFloorDiv && q->op != BinaryOp::kFloorMod)) return x;
    for (const Bounded& b : known_) {
      if (b.bound > *n) continue;
      const Expr rest = simplify(q->a - b.index);
      if (is_multiple(rest, *n)) return q->op == BinaryOp::kFloorDiv ? floordiv(rest, *n) : b.index;
    }
    return x;
  }

 private:
  const std::vector<Bounded>& known_;
};

class SimplifyLoops : public Rewriter {
 public:
  explicit SimplifyLoops(Ranges ranges) : ranges_(std::move(ranges)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const Expr x = simplify(e, ranges_);
    if (known_.empty()) return x;
    const Expr less = SimplifyQuotients(known_).rewrite(x);
    return less.same_as(x) ? x : simplify(less, ranges_);
  }
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
    const size_t outside = known_.size();
    learn(c);
    Stmt then = rewrite(i.then);
    known_.resize(outside);
    Stmt otherwise = i.otherwise ? rewrite(i.otherwise) : Stmt();
    if (c.same_as(i.condition) && then.same_as(i.then) && otherwise.same_as(i.otherwise)) return s;
    return if_then(c, then, otherwise);
  }
  void learn(const Expr& condition) {
    keep_conjuncts(condition, [&](const Expr& part) {
      const auto* less = part.as<Binary>();
      const auto bound = less && less->op == BinaryOp::kLt ? as_int(less->b) : std::nullopt;
      if (bound && less->a.dtype() == DType::kInt64 &&
          interval(less->a, ranges_).low.value_or(-1) >= 0)
        known_.push_back({less->a, *bound});
      return false;
    });
  }
  static bool is_empty(const Stmt& s) { return s.as<Seq>() && s.as<Seq>()->stmts.empty(); }
  Ranges ranges_;
  std::vector<Bounded> known_;  // of the conditions around
};

}  // namespace

Stmt simplify_loops(const Stmt& s, const Ranges& ranges) {
  return SimplifyLoops(ranges).rewrite(s);
}

}  // namespace tilewright::passes
