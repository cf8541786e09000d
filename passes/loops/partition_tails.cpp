// Loop peeling at the end (Halide's loop partitioning): a condition that fails only in a loop's
// last iterations is taken out of the others.
//
//    for v in 0..ceil(n/8):                 for v in 0..n/8:      A[8v .. 8v+8]      no condition
//      if 8v + l < n: A[8v + l]      ->     for v in n/8..ceil:   A[8v .. 8v+8] where 8v + l < n
//
// Serial loops are cut in two. A parallel loop stays one loop, so that there is one fork: its body
// becomes a choice. A register tile that lacks rows gets code for each number of rows that may be
// left (up to kMostRowsApart), so that its accumulators stay in registers.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Conditions `a * v + rest < limit` of a loop over v that surely hold for v in [0, safe).
struct Split {
  Expr safe;
};

// Rows of a tile, kept in registers: in iteration v they are a * v + r for each r below a, of which
// those at `limit` and beyond do not exist.
struct RowTile {
  int64_t rows = 0;
  Expr limit;
  std::unordered_set<const ExprNode*> loops;  // over r
};
// Tails of fewer rows than this get code for each number of rows that may be left.
constexpr int64_t kMostRowsApart = 8;

class PartitionTails : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f) return Rewriter::rewrite(s);
    if (f->loop_kind != LoopKind::kSerial && f->loop_kind != LoopKind::kParallel)
      return Rewriter::rewrite(s);
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
    std::optional<Division> found;
    const Ranges inside = ranges_below(body);
    for_each_condition(body, [&](const Binary& less) {
      if (!found) found = division(less, f, body, inside);
    });
    if (!found) return body;
    auto holds = [&](const Expr& c) {
      const auto* less = c.as<Binary>();
      const auto d =
          less && less->op == BinaryOp::kLt ? division(*less, f, body, inside) : std::nullopt;
      return d && same_expr(d->of_task, found->of_task) && d->safe >= found->safe;
    };
    Stmt main = divide_tasks(f, Assume(holds).rewrite(body), depth - 1);
    return if_then(found->of_task < Expr(found->safe), main, clone_with_fresh_names(body, "_tail"));
  }
  // A condition holds while `of_task`, which follows from a task's number, is below `safe`.
  struct Division {
    Expr of_task;
    int64_t safe = 0;
  };
  static std::optional<Division> division(const Binary& less, const For& f, const Stmt& body,
                                          const Ranges& inside) {
    if (less.a.dtype() != DType::kInt64) return std::nullopt;
    const Linear left = to_linear(less.a - less.b);  // left < 0
    Linear rest;
    rest.constant = left.constant;
    Expr of_task;
    int64_t step = 0;
    for (const LinearTerm& t : left.terms) {
      const bool varies = std::any_of(t.factors.begin(), t.factors.end(),
                                      [&](const Expr& x) { return uses_var(x, f.var); });
      if (varies && (of_task || t.factors.size() != 1)) return std::nullopt;
      if (varies) {
        of_task = t.factors[0];
        step = t.coefficient;
      } else {
        rest.terms.push_back(t);
      }
    }
    if (!of_task || step <= 0 || uses_below(of_task, body)) return std::nullopt;
    const Expr most = upper_bound(to_expr(rest), inside);
    if (!most) return std::nullopt;
    const auto safe = as_int(simplify(floordiv(Expr(-1) - most, Expr(step)) + Expr(1)));
    if (!safe || *safe <= 0) return std::nullopt;
    return Division{of_task, *safe};
  }
  // Each part `a < b` of the conditions of a statement.
  static void for_each_condition(const Stmt& body,
                                 const std::function<void(const Binary&)>& visit) {
    for_each_stmt(body, [&](const Stmt& x) {
      const auto* i = x.as<If>();
      if (!i || i->otherwise) return;
      std::vector<Expr> parts;
      conjunction(i->condition, parts);
      for (const Expr& p : parts)
        if (const auto* c = p.as<Binary>(); c && c->op == BinaryOp::kLt) visit(*c);
    });
  }

  std::optional<Split> find_split(const For& f, const Stmt& body) {
    std::optional<Split> found;
    Ranges inside = ranges_below(body);
    for_each_stmt(body, [&](const Stmt& x) {
      const auto* i = x.as<If>();
      if (!i || i->otherwise || found) return;
      std::vector<Expr> parts;
      conjunction(i->condition, parts);
      for (const Expr& p : parts) {
        Expr safe = found ? Expr() : safe_iterations(p, f, inside);
        if (!safe || uses_inner(safe, f, body)) continue;
        if (auto n = as_int(safe); n && *n <= 0) continue;
        found = Split{safe};
      }
    });
    return found;
  }
  // The number of iterations from the first for which the condition holds; null when not known.
  // Conditions are compared with their worst case over the loops inside, so they hold for all of
  // them.
  Expr safe_iterations(const Expr& condition, const For& f, const Ranges& inside) const {
    const auto* c = condition.as<Binary>();
    if (!c || c->op != BinaryOp::kLt || c->a.dtype() != DType::kInt64) return nullptr;
    Linear left = to_linear(c->a - c->b);  // left < 0
    auto coefficient = left.coefficient_of(f.var);
    if (!coefficient || !coefficient->is_constant() || coefficient->constant <= 0) return nullptr;
    Expr rest = upper_bound(to_expr(left.without(f.var)), inside);
    if (!rest) return nullptr;
    // a * v + rest <= -1  <=>  v <= (-1 - rest) / a
    return simplify(floordiv(Expr(-1) - rest, Expr(coefficient->constant)) + Expr(1));
  }
  static Ranges ranges_below(const Stmt& body) {
    Ranges r;
    for_each_stmt(body, [&](const Stmt& x) {
      if (const auto* g = x.as<For>()) r.set(g->var, g->extent);
    });
    return r;
  }
  static bool uses_inner(const Expr& e, const For& f, const Stmt& body) {
    return uses_var(e, f.var) || uses_below(e, body);
  }
  // What is known inside of the body alone.
  static bool uses_below(const Expr& e, const Stmt& body) {
    bool used = false;
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

  // Conditions for which `holds` are true, or `value`; loops in `shortened` get `extent`.
  class Assume : public Rewriter {
   public:
    explicit Assume(std::function<bool(const Expr&)> holds,
                    const std::unordered_set<const ExprNode*>* shortened = nullptr,
                    Expr extent = nullptr, bool value = true)
        : holds_(std::move(holds)),
          shortened_(shortened),
          extent_(std::move(extent)),
          value_(value) {}
    using Rewriter::rewrite;
    Expr rewrite(const Expr& e) override {
      const auto* b = e.as<Binary>();
      if (!b || e.dtype() != DType::kBool) return Rewriter::rewrite(e);
      return holds_(e) ? bool_imm(value_) : Rewriter::rewrite(e);
    }
    Stmt rewrite(const Stmt& s) override {
      if (const auto* f = s.as<For>(); f && shortened_ && shortened_->count(f->var.get()))
        return for_loop(f->var, extent_, rewrite(f->body), f->loop_kind);
      const auto* i = s.as<If>();
      if (!i) return Rewriter::rewrite(s);
      Expr c = rewrite(i->condition);
      Stmt then = rewrite(i->then);
      if (is_one(c)) return then;
      return if_then(c, then, i->otherwise ? rewrite(i->otherwise) : Stmt());
    }

   private:
    std::function<bool(const Expr&)> holds_;
    const std::unordered_set<const ExprNode*>* shortened_;
    Expr extent_;
    bool value_;
  };

  // The main loop without the condition, then the tail with it; the tail goes away where it would
  // do nothing.
  Stmt apply(const For& f, const Stmt& body, const Split& split) {
    const Ranges inside = ranges_below(body);
    auto holds = [&](const Expr& c) {
      Expr safe = safe_iterations(c, f, inside);
      return safe && can_prove_equal(safe, split.safe);
    };
    const auto tile = find_row_tile(f, body, split.safe);
    const Expr main = tile ? split.safe : simplify(min(max(split.safe, Expr(0)), f.extent));
    Stmt first = for_loop(f.var, main, Assume(holds).rewrite(body), f.loop_kind);
    if (tile) return seq({first, leftover_rows(f, body, *tile, main)});
    Expr left = simplify(f.extent - main);
    if (is_zero(left)) return first;
    auto fails = [&](const Expr& c) { return is_same_for(c, inside) && holds(c); };
    const Stmt rest = simplify_loops(Assume(fails, nullptr, nullptr, false).rewrite(body));
    if (!does_anything(rest)) return first;
    Var v(f.var.name() + "_tail");
    Stmt tail = substitute(clone_with_fresh_names(rest, "_tail"), {{f.var.get(), v + main}});
    return seq({first, for_loop(v, left, tail, f.loop_kind)});
  }

  // Does a condition say the same in all iterations of these loops?
  static bool is_same_for(const Expr& condition, const Ranges& loops) {
    bool same = true;
    for_each_expr(condition, [&](const Expr& e) { same &= !loops.find(e); });
    return same;
  }
  static bool does_anything(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& x) {
      found |= x.kind() == NodeKind::kStore || x.kind() == NodeKind::kWhile;
    });
    return found;
  }

  // A condition on indices alone that depends on loop f.
  static bool is_index_check(const Expr& e, const For& f) {
    const auto* c = e.as<Binary>();
    if (!c || c->op != BinaryOp::kLt || c->a.dtype() != DType::kInt64 || !uses_var(e, f.var))
      return false;
    bool loads = false;
    for_each_expr(e, [&](const Expr& x) { loads |= x.kind() == NodeKind::kLoad; });
    return !loads;
  }
  // Is the condition that row r of a tile exists: a * v + r < limit?
  static bool is_row_check(const Expr& condition, const For& f, const Var& r, RowTile& tile) {
    const auto* c = condition.as<Binary>();
    const Linear left = to_linear(c->a - c->b);
    auto of_v = left.coefficient_of(f.var), of_r = left.coefficient_of(r);
    if (!of_v || !of_v->is_constant() || of_v->constant != tile.rows || !of_r ||
        !of_r->is_constant() || of_r->constant != 1)
      return false;
    const Expr limit = simplify(Expr(0) - to_expr(left.without(f.var).without(r)));
    if (!tile.limit) tile.limit = limit;
    return same_expr(limit, tile.limit);
  }
  // Does each store below stand under a condition on row r?
  static bool stores_are_checked(const Stmt& s, const For& f, const Var& r) {
    if (const auto* q = s.as<Seq>())
      return std::all_of(q->stmts.begin(), q->stmts.end(),
                         [&](const Stmt& x) { return stores_are_checked(x, f, r); });
    if (const auto* g = s.as<For>()) return stores_are_checked(g->body, f, r);
    if (const auto* a = s.as<Allocate>()) return stores_are_checked(a->body, f, r);
    if (const auto* l = s.as<Let>()) return stores_are_checked(l->body, f, r);
    const auto* i = s.as<If>();
    if (!i || i->otherwise) return false;
    std::vector<Expr> parts;
    conjunction(i->condition, parts);
    for (const Expr& p : parts)
      if (is_index_check(p, f) && uses_var(p, r)) return true;
    return stores_are_checked(i->then, f, r);
  }
  // The tile of loop f when each of its conditions on rows is of that form, all alike, and the last
  // iteration, after `safe` others, is the only one that lacks rows.
  std::optional<RowTile> find_row_tile(const For& f, const Stmt& body, const Expr& safe) {
    RowTile tile;
    std::vector<const For*> unrolled;
    for_each_stmt(body, [&](const Stmt& x) {
      const auto* g = x.as<For>();
      if (g && g->loop_kind == LoopKind::kUnrolled) unrolled.push_back(g);
    });
    bool fits = true;
    for_each_expr(body, [&](const Expr& e) {
      if (!fits || !is_index_check(e, f)) return;
      const For* rows = nullptr;
      for (const For* g : unrolled)
        if (uses_var(e, g->var)) rows = rows ? nullptr : g;
      auto n = rows ? as_int(rows->extent) : std::nullopt;
      fits = n && *n > 1 && *n <= kMostRowsApart && (!tile.rows || tile.rows == *n);
      if (!fits) return;
      tile.rows = *n;
      fits = is_row_check(e, f, rows->var, tile) && stores_are_checked(rows->body, f, rows->var);
      tile.loops.insert(rows->var.get());
    });
    if (!fits || !tile.rows || uses_inner(tile.limit, f, body)) return std::nullopt;
    const Expr rows(tile.rows);
    const bool one_lacks_rows =
        can_prove_equal(f.extent, floordiv(tile.limit + rows - Expr(1), rows)) &&
        can_prove_equal(safe, floordiv(tile.limit, rows));
    return one_lacks_rows ? std::optional(tile) : std::nullopt;
  }
  // if left == 1: one row; if left == 2: two rows; ... each with unrolled loops of that extent.
  Stmt leftover_rows(const For& f, const Stmt& body, const RowTile& tile, const Expr& main) {
    const Expr left = simplify(tile.limit - main * Expr(tile.rows));
    std::vector<Stmt> cases;
    for (int64_t n = 1; n < tile.rows; ++n) {
      auto holds = [&](const Expr& c) { return is_index_check(c, f); };
      Stmt some = Assume(holds, &tile.loops, Expr(n)).rewrite(body);
      some = clone_with_fresh_names(some, "_left" + std::to_string(n));
      cases.push_back(if_then(eq(left, Expr(n)), substitute(some, {{f.var.get(), main}})));
    }
    return seq(std::move(cases));
  }
};

}  // namespace

Stmt partition_tails(const Stmt& s) { return simplify_loops(PartitionTails().rewrite(s)); }

}  // namespace tilewright::passes
