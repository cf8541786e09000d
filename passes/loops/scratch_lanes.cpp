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
    if (!b) return;
    if (b->op == BinaryOp::kAnd && e.dtype() == DType::kBool) {
      add_conditions(b->a);
      add_conditions(b->b);
    } else if (b->op == BinaryOp::kLt && b->a.dtype() == DType::kInt64) {
      conditions_.push_back(to_linear(b->a - b->b));
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
  bool is_guarded(const Load& l) {
    const Linear index = to_linear(l.indices[0]);
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [&](const Linear& c) { return guards(c, index); });
  }
  // The condition is `inner + outer < 0`, where inner holds what the loops below the buffer give.
  bool guards(const Linear& condition, const Linear& index) {
    Linear inner, outer, rest = index;
    for (const LinearTerm& t : condition.terms)
      (uses_loops(t) ? inner : outer).add(t.factors, t.coefficient);
    outer.constant = condition.constant;
    if (inner.is_constant()) return false;
    rest.add(inner, -1);
    const Expr others = to_expr(rest), mine = to_expr(inner);
    for (const Var& v : loops_)
      if (uses_var(mine, v) && uses_var(others, v)) return false;
    const Expr limit = to_expr(outer);
    if (!limit_) limit_ = limit;
    return same_expr(limit, limit_);
  }

  Buffer buffer_;
  std::vector<Var> loops_;
  std::vector<Linear> conditions_;
  Expr limit_;
  bool guarded_ = true;
};

}  // namespace

bool has_scratch_lanes(const Stmt& body, const Buffer& buffer) {
  return LoadsAreGuarded(buffer).of(body);
}

}  // namespace tilewright::passes
