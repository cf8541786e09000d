// A small prover for affine inequalities. An expression is at least 0 when its least value over the ranges of loops
// is, or when what is left after subtracting a fact is; what is not affine is split into cases first, as in Omega
// tests of dependence analysers (Pugh, 1991), without their completeness: indices are simple.
#include "ir/loops/facts.h"

#include <algorithm>
#include <utility>

#include "ir/loops/intervals.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir {

namespace {
constexpr int kMostSteps = 400;   // cases looked at in one proof
constexpr int kMostDepth = 16;    // of cases within cases
constexpr int kMostChained = 60;  // steps after taking a fact away
}  // namespace

// A proof of one inequality. Works on facts that it may add to.
class Proof {
 public:
  explicit Proof(const Facts& facts) : facts_(facts), ranges_(facts_.ranges_) {}

  bool nonnegative(const Linear& l, int depth = 0) {
    if (++steps_ > limit_ || depth > kMostDepth) return false;
    if (least_is_nonnegative(l) ||
        follows_from_facts(l, [&](const Linear& rest) { return least_is_nonnegative(rest); }))
      return true;
    // A loop's extent may hang on other variables in range: its own variable gives way first.
    for (size_t t = 0; t < l.terms.size(); ++t)
      for (size_t f = 0; f < l.terms[t].factors.size(); ++f)
        if (at_end(l, t, f, depth)) return true;
    for (size_t t = 0; t < l.terms.size(); ++t)
      for (size_t f = 0; f < l.terms[t].factors.size(); ++f)
        if (is_split(l.terms[t].factors[f]) && split(l, t, f, depth)) return true;
    // Extents of loops may be what is split.
    if (const auto low = extreme(l, ranges_, false)) {
      const Linear least = to_linear(simplify(to_expr(*low), ranges_));
      if (!same_expr(to_expr(least), to_expr(l)) && nonnegative(least, depth + 1)) return true;
    }
    return follows_from_two(l, depth);
  }

 private:
  // Whether `proves` holds for what is left of the form after subtracting such a multiple of a fact that one term goes.
  template <typename Proves>
  bool follows_from_facts(const Linear& l, Proves proves) {
    for (size_t k = 0; k < facts_.facts_.size(); ++k)
      for (const LinearTerm& y : l.terms)
        for (size_t t = 0; t < facts_.facts_[k].terms.size(); ++t) {
          const auto times = quotient(y, facts_.facts_[k].terms[t]);
          if (!times) continue;
          Linear rest = l;
          rest.add(facts_.facts_[k].times(*times), -1);
          const bool gone = std::none_of(rest.terms.begin(), rest.terms.end(),
                                         [&](const LinearTerm& z) { return same_factors(z, y); });
          if (gone && proves(rest)) return true;
        }
    return false;
  }
  // With a fact taken away, and the rest proven in a few steps.
  bool follows_from_two(const Linear& l, int depth) {
    if (chained_) return false;
    chained_ = true;
    const bool follows = follows_from_facts(l, [&](const Linear& rest) {
      if (rest.terms.size() > l.terms.size()) return false;
      const int limit = std::exchange(limit_, std::min(limit_, steps_ + kMostChained));
      const bool proved = nonnegative(rest, depth + 1);
      limit_ = limit;
      return proved;
    });
    chained_ = false;
    return follows;
  }
  static bool same_factors(const LinearTerm& a, const LinearTerm& b) {
    return a.factors.size() == b.factors.size() &&
           std::equal(a.factors.begin(), a.factors.end(), b.factors.begin(), same_expr);
  }
  // What x is to be multiplied by to be y, if that is not negative.
  std::optional<Linear> quotient(const LinearTerm& y, const LinearTerm& x) const {
    if (y.coefficient % x.coefficient != 0 || y.coefficient / x.coefficient < 1)
      return std::nullopt;
    LinearTerm rest = y;
    for (const Expr& f : x.factors) {
      const auto it = std::find_if(rest.factors.begin(), rest.factors.end(),
                                   [&](const Expr& g) { return same_expr(f, g); });
      if (it == rest.factors.end()) return std::nullopt;
      rest.factors.erase(it);
    }
    for (const Expr& f : rest.factors)
      if (!can_prove(Expr(0) <= f, ranges_)) return std::nullopt;
    Linear times;
    times.add(rest.factors, y.coefficient / x.coefficient);
    return times;
  }
  // By intervals, and with each ranged variable at the end of its range that makes the form least.
  bool least_is_nonnegative(const Linear& l) const {
    if (l.is_constant()) return l.constant >= 0;
    return can_prove(Expr(0) <= to_expr(l), ranges_);
  }
  // Whether cases of the expression are looked at one by one.
  static bool is_split(const Expr& e) {
    if (e.as<Select>()) return true;
    const auto* b = e.as<Binary>();
    return b && (b->op == BinaryOp::kMin || b->op == BinaryOp::kMax ||
                 b->op == BinaryOp::kFloorDiv || b->op == BinaryOp::kFloorMod);
  }
  // The form with one factor of one term replaced.
  Linear replaced(const Linear& l, size_t t, size_t f, const Expr& value) const {
    Linear rest;
    rest.constant = l.constant;
    for (size_t k = 0; k < l.terms.size(); ++k)
      if (k != t) rest.add(l.terms[k].factors, l.terms[k].coefficient);
    Linear term;
    term.constant = l.terms[t].coefficient;
    for (size_t k = 0; k < l.terms[t].factors.size(); ++k)
      term = term.times(to_linear(k == f ? value : l.terms[t].factors[k]));
    rest.add(term);
    return to_linear(simplify(to_expr(rest), ranges_));
  }
  // Whether the other factors of the term are not negative, so that the coefficient gives its sign.
  bool has_sign(const LinearTerm& term, size_t f) const {
    for (size_t k = 0; k < term.factors.size(); ++k)
      if (k != f && !can_prove(Expr(0) <= term.factors[k], ranges_)) return false;
    return true;
  }

  // Puts the end of its range in the place of a variable whose range names other ranged variables, as the loop over
  // a row does whose bounds are data.
  bool at_end(const Linear& l, size_t t, size_t f, int depth) {
    const Expr& v = l.terms[t].factors[f];
    const Ranges::Range* r = v.kind() == NodeKind::kVar ? ranges_.find(v) : nullptr;
    if (!r || !has_sign(l.terms[t], f)) return false;
    const Expr end = l.terms[t].coefficient > 0 ? r->min : r->min + r->extent - Expr(1);
    bool hangs = false;
    for (const Var& other : free_vars_in_order(end)) hangs |= ranges_.find(other) != nullptr;
    return hangs && nonnegative(replaced(l, t, f, end), depth + 1);
  }
  // Looks at the cases of one factor. The minimum of two values is at least 0 when both are, their maximum when one
  // is; where the factor counts negatively it is the other way round.
  bool split(const Linear& l, size_t t, size_t f, int depth) {
    const Expr e = l.terms[t].factors[f];
    if (const auto* s = e.as<Select>()) {
      for (const auto& [condition, holds] : facts_.conditions_)
        if (same_expr(condition, s->condition))
          return nonnegative(replaced(l, t, f, holds ? s->a : s->b), depth + 1);
      return under(s->condition, true, replaced(l, t, f, s->a), depth) &&
             under(s->condition, false, replaced(l, t, f, s->b), depth);
    }
    const auto& b = *e.as<Binary>();
    if (b.op == BinaryOp::kMin || b.op == BinaryOp::kMax) {
      if (!has_sign(l.terms[t], f)) return false;
      const bool both = (b.op == BinaryOp::kMin) == (l.terms[t].coefficient > 0);
      const Linear first = replaced(l, t, f, b.a), second = replaced(l, t, f, b.b);
      return both ? nonnegative(first, depth + 1) && nonnegative(second, depth + 1)
                  : nonnegative(first, depth + 1) || nonnegative(second, depth + 1);
    }
    return divided(l, t, f, b, depth);
  }
  // Replaces a quotient or remainder by a bound. Floor division by a positive divisor d guarantees
  // d * q <= a < d * q + d for the quotient q and 0 <= r < d for the remainder r.
  bool divided(const Linear& l, size_t t, size_t f, const Binary& b, int depth) {
    if (!nonnegative(to_linear(simplify(b.b - Expr(1), ranges_)), depth + 1)) return false;
    if (b.op == BinaryOp::kFloorMod) {
      if (!has_sign(l.terms[t], f)) return false;
      const bool rises = l.terms[t].coefficient > 0;
      return nonnegative(replaced(l, t, f, rises ? Expr(0) : b.b - Expr(1)), depth + 1) ||
             (!rises && proves(b.a) && nonnegative(replaced(l, t, f, b.a), depth + 1));
    }
    // For whole numbers x >= 0 is d * x + d - 1 >= 0, in which d * q is what it is a quotient of, up to a remainder.
    const Var name("quotient");
    Linear scaled = replaced(l, t, f, name).times(to_linear(b.b));
    scaled.add(to_linear(b.b));
    scaled.constant -= 1;
    const auto by_quotient = scaled.coefficient_of(name);
    if (!by_quotient) return false;
    // The divisor is a factor of the coefficient by construction.
    const bool rises = l.terms[t].coefficient > 0;
    if (!has_sign(l.terms[t], f)) return false;
    Linear others;
    others.constant = l.terms[t].coefficient;
    for (size_t k = 0; k < l.terms[t].factors.size(); ++k)
      if (k != f) others = others.times(to_linear(l.terms[t].factors[k]));
    const Linear bound = to_linear(rises ? b.a - b.b + Expr(1) : b.a);
    Linear without = scaled.without(name);
    without.add(others.times(bound));
    return nonnegative(to_linear(simplify(to_expr(without), ranges_)), depth + 1);
  }
  // A short proof beside the one that goes on.
  bool proves(const Expr& e) {
    return nonnegative(to_linear(simplify(e, ranges_)), kMostDepth - 2);
  }
  // The proof of a side of a select, which takes what the condition says.
  bool under(const Expr& condition, bool holds, const Linear& l, int depth) {
    const Facts::Mark mark = facts_.mark();
    facts_.assume(condition, holds);
    const bool proved = nonnegative(l, depth + 1);
    facts_.forget(mark);
    return proved;
  }

  Facts facts_;
  const Ranges& ranges_;
  int steps_ = 0, limit_ = kMostSteps;
  bool chained_ = false;  // a fact was taken away
};

void Facts::assume(const Expr& condition, bool holds) {
  conditions_.emplace_back(condition, holds);
  if (const auto* u = condition.as<Unary>(); u && u->op == UnaryOp::kNot)
    return assume(u->value, !holds);
  if (const auto* s = condition.as<Select>()) return assume_chosen(*s, holds);
  const auto* c = condition.as<Binary>();
  if (!c) return;
  if (c->op == (holds ? BinaryOp::kAnd : BinaryOp::kOr) && c->type.dtype == DType::kBool) {
    assume(c->a, holds);
    assume(c->b, holds);
    return;
  }
  if (!is_integer(c->a.dtype()) || c->a.dtype() == DType::kUInt64 || c->a.lanes() != 1) return;
  const auto at_least = [&](const Expr& a, const Expr& b, int64_t by) {
    assume_nonnegative(cast(DType::kInt64, a) - cast(DType::kInt64, b) - Expr(by));
  };
  switch (c->op) {
    case BinaryOp::kLt: return holds ? at_least(c->b, c->a, 1) : at_least(c->a, c->b, 0);
    case BinaryOp::kLe: return holds ? at_least(c->b, c->a, 0) : at_least(c->a, c->b, 1);
    case BinaryOp::kGt: return holds ? at_least(c->a, c->b, 1) : at_least(c->b, c->a, 0);
    case BinaryOp::kGe: return holds ? at_least(c->a, c->b, 0) : at_least(c->b, c->a, 1);
    case BinaryOp::kEq:
    case BinaryOp::kNe:
      if ((c->op == BinaryOp::kEq) != holds) return assume_differ(c->a, c->b);
      at_least(c->a, c->b, 0);
      return at_least(c->b, c->a, 0);
    default: return;
  }
}

// A side that is the opposite of the outcome was not chosen.
void Facts::assume_chosen(const Select& s, bool holds) {
  const auto is = [](const Expr& e, bool value) { return as_int(e) == int64_t{value}; };
  for (const bool first : {true, false})
    if (is(first ? s.b : s.a, !holds)) {
      assume(s.condition, first);
      assume(first ? s.a : s.b, holds);
    }
}

void Facts::assume_broadcast(const Expr& a, const Expr& b) {
  if (as_int(b)) return assume_broadcast(b, a);
  if (const auto n = as_int(a); n && *n != 1) broadcast_.emplace_back(*n, b);
}
void Facts::assume_differ(const Expr& a, const Expr& b) {
  if (!is_one(b)) return;
  for (const auto& [extent, other] : broadcast_)
    if (can_prove_equal(a, other)) {
      assume_nonnegative(other - Expr(extent));
      assume_nonnegative(Expr(extent) - other);
    }
}

void Facts::enter_loop(const Var& v, const Expr& extent) {
  ranges_.set(v, extent);
  if (!as_int(extent)) assume_nonnegative(extent - Expr(1));
}

bool Facts::proves_nonnegative(const Expr& e) const {
  return Proof(*this).nonnegative(to_linear(simplify(e, ranges_)));
}

}  // namespace tilewright::ir
