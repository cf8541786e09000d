// Symbolic bounds: the largest and the least value of an index while loops run, as an expression
// over the symbols that remain. A variable whose coefficient has a known sign takes the end of its
// range that the sign asks for (as bounds inference does in Halide); what is not a polynomial takes
// its interval.
#include "ir/loops/intervals.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir {

std::optional<Linear> extreme(Linear l, const Ranges& over, bool upper, int depth) {
  if (depth > 24) return std::nullopt;
  for (const LinearTerm& t : l.terms) {
    for (const Expr& f : t.factors) {
      if (f.kind() != NodeKind::kVar || !over.find(f)) continue;
      auto c = l.coefficient_of(Var(f));
      if (!c) return std::nullopt;
      Interval sign = interval(to_expr(*c), over);
      const bool positive = sign.low && *sign.low >= 0, negative = sign.high && *sign.high <= 0;
      if (!positive && !negative) return std::nullopt;
      const Ranges::Range& r = *over.find(f);
      Linear value = to_linear(positive == upper ? r.min + r.extent - Expr(1) : r.min);
      Linear next = l.without(Var(f));
      next.add(c->times(value));
      return extreme(std::move(next), over, upper, depth + 1);
    }
  }
  return l;
}

namespace {
bool has_ranged_var(const Expr& e, const Ranges& over) {
  bool ranged = false;
  for_each_expr(e, [&](const Expr& x) { ranged |= x.kind() == NodeKind::kVar && over.find(x); });
  return ranged;
}
// Variables inside a quotient or a minimum are not eliminated by extremes: such factors take their
// own bounds.
Expr bound_quotients(const Linear& l, const Ranges& over, bool upper) {
  Linear result;
  result.constant = l.constant;
  for (const LinearTerm& t : l.terms) {
    bool ranged = false;
    for (const Expr& f : t.factors) ranged |= has_ranged_var(f, over);
    if (!ranged) {
      result.add(t.factors, t.coefficient);
      continue;
    }
    if (t.factors.size() != 1) return nullptr;
    Interval i = interval(t.factors[0], over);
    const auto& end = (t.coefficient > 0) == upper ? i.high : i.low;
    if (!end) return nullptr;
    const auto sum = bounded(static_cast<__int128>(t.coefficient) * *end + result.constant);
    if (!sum) return nullptr;
    result.constant = *sum;
  }
  return simplify(to_expr(result), over);
}
Expr bound(const Expr& e, const Ranges& over, bool upper) {
  if (auto l = extreme(to_linear(simplify(e, over)), over, upper)) {
    if (Expr result = bound_quotients(to_linear(simplify(to_expr(*l), over)), over, upper))
      return result;
  }
  Interval i = interval(e, over);
  if (upper) return i.high ? Expr(*i.high) : Expr();
  return i.low ? Expr(*i.low) : Expr();
}
}  // namespace

Expr upper_bound(const Expr& e, const Ranges& over) { return bound(e, over, true); }
Expr lower_bound(const Expr& e, const Ranges& over) { return bound(e, over, false); }

bool widen(Expr& low, Expr& high, const Expr& l, const Expr& h) {
  if (!low) {
    low = l;
    high = h;
    return true;
  }
  if (can_prove(l <= low))
    low = l;
  else if (!can_prove(low <= l))
    return false;
  if (can_prove(high <= h))
    high = h;
  else if (!can_prove(h <= high))
    return false;
  return true;
}

}  // namespace tilewright::ir
