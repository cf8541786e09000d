#include <algorithm>
#include <functional>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A condition `a * v + rest < limit` of a loop over v, with the iterations for which it surely
// holds.
struct Split {
  Expr condition;
  Expr safe;  // v in [0, safe): the condition holds
};

class PartitionTails : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f) return Rewriter::rewrite(s);
    if (f->loop_kind != LoopKind::kSerial && f->loop_kind != LoopKind::kParallel) {
      inner_.set(f->var, f->extent);
      return Rewriter::rewrite(s);
    }
    inner_.set(f->var, f->extent);
    Stmt body = rewrite(f->body);
    if (f->loop_kind == LoopKind::kParallel) {
      body = divide_tasks(*f, body, kMostDivisions);
      return body.same_as(f->body) ? s : for_loop(f->var, f->extent, body, f->loop_kind);
    }
    auto split = find_split(*f, body);
    if (!split) return body.same_as(f->body) ? s : for_loop(f->var, f->extent, body, f->loop_kind);
    return apply(*f, body, *split);
  }

 private:
  // A parallel loop stays one loop: each task chooses between a body without the condition and the
  // whole one. Tasks may number tiles of several axes: what the condition names is then a quotient
  // or remainder of the loop's variable.
  static constexpr int kMostDivisions = 2;
  Stmt divide_tasks(const For& f, const Stmt& body, int depth) {
    if (depth == 0) return body;
    struct Division {
      Expr condition, of_task, safe;
    };
    std::optional<Division> found;
    const Ranges inside = ranges_below(f, body);
    for_each_condition(body, [&](const Expr& p, const Binary& less) {
      if (found) return;
      const Linear left = to_linear(less.a - less.b);  // left < 0
      Linear rest;
      rest.constant = left.constant;
      Expr of_task;
      int64_t step = 0;
      for (const LinearTerm& t : left.terms) {
        const bool varies = std::any_of(t.factors.begin(), t.factors.end(),
                                        [&](const Expr& x) { return uses_var(x, f.var); });
        if (varies && (of_task || t.factors.size() != 1)) return;
        if (varies) {
          of_task = t.factors[0];
          step = t.coefficient;
        } else {
          rest.terms.push_back(t);
        }
      }
      if (!of_task || step <= 0) return;
      const Expr most = upper_bound(to_expr(rest), inside);
      if (!most) return;
      const auto safe = as_int(simplify(floordiv(Expr(-1) - most, Expr(step)) + Expr(1)));
      if (!safe || *safe <= 0) return;
      found = Division{p, of_task, Expr(*safe)};
    });
    if (!found) return body;
    Stmt main = divide_tasks(f, Assume(found->condition).rewrite(body), depth - 1);
    return if_then(found->of_task < found->safe, main, clone_with_fresh_names(body, "_tail"));
  }
  // Each part `a < b` of the conditions of a statement.
  static void for_each_condition(const Stmt& body,
                                 const std::function<void(const Expr&, const Binary&)>& visit) {
    for_each_stmt(body, [&](const Stmt& x) {
      const auto* i = x.as<If>();
      if (!i || i->otherwise) return;
      std::vector<Expr> parts;
      conjunction(i->condition, parts);
      for (const Expr& p : parts)
        if (const auto* c = p.as<Binary>(); c && c->op == BinaryOp::kLt) visit(p, *c);
    });
  }

  std::optional<Split> find_split(const For& f, const Stmt& body) {
    std::optional<Split> found;
    Ranges inside = ranges_below(f, body);
    for_each_condition(body, [&](const Expr& p, const Binary& less) {
      if (found) return;
      Linear left = to_linear(less.a - less.b);  // left < 0
      auto coefficient = left.coefficient_of(f.var);
      if (!coefficient || !coefficient->is_constant() || coefficient->constant <= 0) return;
      Expr rest = upper_bound(to_expr(left.without(f.var)), inside);
      if (!rest) return;
      // a * v + rest <= -1  <=>  v <= (-1 - rest) / a
      Expr safe =
          simplify(floordiv(Expr(-1) - rest, Expr(coefficient->constant)) + Expr(1), outer_);
      if (uses_inner(safe, f, body)) return;
      if (auto n = as_int(safe); n && *n <= 0) return;
      found = Split{p, safe};
    });
    return found;
  }
  Ranges ranges_below(const For& f, const Stmt& body) {
    Ranges r;
    for_each_stmt(body, [&](const Stmt& x) {
      if (const auto* g = x.as<For>()) r.set(g->var, g->extent);
    });
    (void)f;
    return r;
  }
  static bool uses_inner(const Expr& e, const For& f, const Stmt& body) {
    bool used = uses_var(e, f.var);
    for_each_stmt(body, [&](const Stmt& x) {
      if (const auto* g = x.as<For>()) used |= uses_var(e, g->var);
      if (const auto* l = x.as<Let>()) used |= uses_var(e, l->var);
    });
    for_each_expr(e, [&](const Expr& x) { used |= x.kind() == NodeKind::kLoad; });
    return used;
  }
  static void conjunction(const Expr& e, std::vector<Expr>& parts) {
    const auto* b = e.as<Binary>();
    if (b && b->op == BinaryOp::kAnd) {
      conjunction(b->a, parts);
      conjunction(b->b, parts);
    } else {
      parts.push_back(e);
    }
  }

  // Removes conjuncts that are the split's condition.
  class Assume : public Rewriter {
   public:
    explicit Assume(const Expr& condition) : condition_(condition) {}
    using Rewriter::rewrite;
    Expr rewrite(const Expr& e) override {
      return same_expr(e, condition_) ? bool_imm(true) : Rewriter::rewrite(e);
    }
    Stmt rewrite(const Stmt& s) override {
      const auto* i = s.as<If>();
      if (!i) return Rewriter::rewrite(s);
      Expr c = rewrite(i->condition);
      Stmt then = rewrite(i->then);
      if (is_one(c)) return then;
      return if_then(c, then, i->otherwise ? rewrite(i->otherwise) : Stmt());
    }

   private:
    const Expr& condition_;
  };

  Stmt apply(const For& f, const Stmt& body, const Split& split) {
    Expr main = simplify(min(max(split.safe, Expr(0)), f.extent), outer_);
    Stmt first = for_loop(f.var, main, Assume(split.condition).rewrite(body), f.loop_kind);
    Expr left = simplify(f.extent - main, outer_);
    if (is_zero(left)) return first;
    Var v(f.var.name() + "_tail");
    Stmt tail = substitute(clone_with_fresh_names(body, "_tail"), {{f.var.get(), v + main}});
    return seq({first, for_loop(v, left, tail, f.loop_kind)});
  }
  Ranges inner_, outer_;
};

}  // namespace

Stmt partition_tails(const Stmt& s) { return simplify_loops(PartitionTails().rewrite(s)); }

}  // namespace tilewright::passes
