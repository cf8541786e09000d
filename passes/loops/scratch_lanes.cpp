#include "passes/loops/scratch_lanes.h"

#include <algorithm>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class LoadsAreGuarded {
 public:
  explicit LoadsAreGuarded(Buffer buffer) : buffer_(std::move(buffer)) {}
  bool of(const Stmt& body) {
    visit(body);
    return guarded_ && limit_;
  }

 private:
  void visit(const Stmt& s) {
    if (const auto* f = s.as<For>()) {
      loops_.push_back(f->var);
      visit(f->body);
      loops_.pop_back();
    } else if (const auto* q = s.as<Seq>()) {
      for (const Stmt& x : q->stmts) visit(x);
    } else if (const auto* a = s.as<Allocate>()) {
      visit(a->body);
    } else if (const auto* l = s.as<Let>()) {
      check_loads(l->value);
      visit(l->body);
    } else if (const auto* i = s.as<If>()) {
      check_loads(i->condition);
      const size_t outer = conditions_.size();
      add_conditions(i->condition);
      visit(i->then);
      conditions_.resize(outer);
      if (i->otherwise) visit(i->otherwise);
    } else if (const auto* st = s.as<Store>()) {
      for (const Expr& e : st->indices) check_loads(e);
      check_loads(st->value);
    } else {
      guarded_ = false;
    }
  }
  void add_conditions(const Expr& e) {
    const auto* b = e.as<Binary>();
    if (b && b->op == BinaryOp::kAnd && e.dtype() == DType::kBool) {
      add_conditions(b->a);
      add_conditions(b->b);
    } else {
      conditions_.push_back(e);
    }
  }
  bool uses_loops(const LinearTerm& t) const {
    for (const Expr& factor : t.factors)
      for (const Var& v : loops_)
        if (uses_var(factor, v)) return true;
    return false;
  }
  void check_loads(const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = x.as<Load>();
      if (l && l->buffer == buffer_) guarded_ = guarded_ && is_guarded(*l);
    });
  }
  // Under one guard or more, and no other condition on the same lanes.
  bool is_guarded(const Load& l) {
    const Linear index = to_linear(l.indices[0]);
    std::vector<Expr> others;
    Expr lanes;
    for (const Expr& c : conditions_)
      if (Expr inner = guarded_part(c, index))
        lanes = lanes ? lanes + inner : inner;
      else
        others.push_back(c);
    return lanes && std::none_of(others.begin(), others.end(),
                                 [&](const Expr& c) { return share_loops(c, lanes); });
  }
  bool share_loops(const Expr& a, const Expr& b) const {
    return std::any_of(loops_.begin(), loops_.end(),
                       [&](const Var& v) { return uses_var(a, v) && uses_var(b, v); });
  }
  // A guard is `inner + outer < 0`, where inner is what the loops below the buffer give, a part of
  // the index that shares no loop with the rest of it. Null when the condition is none.
  Expr guarded_part(const Expr& condition, const Linear& index) {
    const auto* b = condition.as<Binary>();
    if (!b || b->op != BinaryOp::kLt || b->a.dtype() != DType::kInt64) return nullptr;
    const Linear both = to_linear(b->a - b->b);
    Linear inner, outer, rest = index;
    for (const LinearTerm& t : both.terms)
      (uses_loops(t) ? inner : outer).add(t.factors, t.coefficient);
    outer.constant = both.constant;
    if (inner.is_constant()) return nullptr;
    rest.add(inner, -1);
    const Expr part = to_expr(inner), limit = to_expr(outer);
    if (share_loops(part, to_expr(rest))) return nullptr;
    if (!limit_) limit_ = limit;
    return same_expr(limit, limit_) ? part : Expr();
  }

  Buffer buffer_;
  std::vector<Var> loops_;
  std::vector<Expr> conditions_;
  Expr limit_;
  bool guarded_ = true;
};

}  // namespace

bool has_scratch_lanes(const Stmt& body, const Buffer& buffer) {
  return LoadsAreGuarded(buffer).of(body);
}

}  // namespace tilewright::passes
