// Simplification of index arithmetic under ranges of variables, bottom up. Sums and products go
// through the canonical form (linear.h); quotients and remainders are split by what the divisor
// divides, and decided by interval arithmetic where the rest is small:
//
//    floordiv(32*i + j, 8)    with j in [0, 8)      4*i
//    floormod(32*i + j, 8)                          j
//    8*floordiv(j, 8) + floormod(j, 8)              j
//    select(i*16 + j < n, ...)  provable            true
//
// That is what splitting, fusing and blocked layouts produce, and what makes accesses contiguous
// again (TVM's canonical simplifier and Halide's Simplify serve the same end). It need not be
// complete: what is not proved stays a guard, a gather or a division, at a cost in speed alone.
#include "ir/loops/simplify.h"

#include <algorithm>

#include "ir/loops/intervals.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/whole_numbers.h"

namespace tilewright::ir {

namespace {

class Simplify : public Rewriter {
 public:
  explicit Simplify(const Ranges& ranges) : ranges_(ranges), intervals_(ranges) {}
  using Rewriter::rewrite;

  // What is shared stays shared, and unchanged means the same pointer: values made of one another would
  // else be trees that double with every step.
  Expr rewrite(const Expr& e) override {
    if (e.kind() == NodeKind::kIntImm || e.kind() == NodeKind::kFloatImm) return e;
    if (e.kind() == NodeKind::kVar) {
      const Ranges::Range* r = ranges_.find(e);
      return r && is_one(r->extent) ? r->min : e;
    }
    if (const auto it = known_.find(e.get()); it != known_.end()) return it->second.second;
    Expr result = simplified(e);
    if (same_expr(result, e)) result = e;
    known_.emplace(e.get(), std::pair{e, result});
    return result;
  }

 private:
  Expr simplified(const Expr& e) {
    if (const auto parts = long_sum(e); !parts.empty()) {
      Linear l;
      for (const auto& [part, sign] : parts) l.add(to_linear(rewrite(part)), sign);
      return sum(std::move(l));
    }
    Expr x = Rewriter::rewrite(e);
    if (x.lanes() != 1) return x;
    if (const auto* b = x.as<Binary>()) return simplify_binary(x, *b);
    const auto* u = x.as<Unary>();
    if (u && u->op == UnaryOp::kNeg && x.dtype() == DType::kInt64) return sum(to_linear(x));
    return x;
  }
  // The parts of a sum of many, first to last, with their signs: it is simplified at once, for each
  // sum inside would go through all parts before it. Empty for other expressions.
  static std::vector<std::pair<Expr, int64_t>> long_sum(const Expr& e) {
    constexpr size_t kLong = 16;
    const auto as_sum = [](const Expr& x) {
      const auto* b = x.type() == ScalarType{} ? x.as<Binary>() : nullptr;
      return b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub) ? b : nullptr;
    };
    size_t length = 0;
    for (const Binary* b = as_sum(e); b; b = as_sum(b->a)) ++length;
    if (length < kLong) return {};
    std::vector<std::pair<Expr, int64_t>> parts;
    Expr first = e;
    while (const Binary* b = as_sum(first)) {
      parts.emplace_back(b->b, b->op == BinaryOp::kAdd ? 1 : -1);
      first = b->a;
    }
    parts.emplace_back(first, 1);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  // Only i64, which indices are: other types wrap, so their sums do not reorder under comparisons.
  Expr simplify_binary(const Expr& e, const Binary& b) {
    if (b.a.dtype() != DType::kInt64) return e;
    switch (b.op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
      case BinaryOp::kMul: return sum(to_linear(e));
      case BinaryOp::kFloorDiv: return divide(b.a, b.b);
      case BinaryOp::kFloorMod: return modulo(b.a, b.b);
      case BinaryOp::kDiv: {
        Interval a = intervals_.of(b.a), d = intervals_.of(b.b);
        if (a.low && *a.low >= 0 && d.low && *d.low >= 0) return divide(b.a, b.b);
        return e;
      }
      case BinaryOp::kTruncMod: {
        Interval a = intervals_.of(b.a), d = intervals_.of(b.b);
        if (a.low && *a.low >= 0 && d.low && *d.low >= 0) return modulo(b.a, b.b);
        return e;
      }
      case BinaryOp::kMin:
        if (nonnegative(b.b - b.a)) return b.a;
        return nonnegative(b.a - b.b) ? b.b : e;
      case BinaryOp::kMax:
        if (nonnegative(b.b - b.a)) return b.b;
        return nonnegative(b.a - b.b) ? b.a : e;
      case BinaryOp::kLt: return decide(e, b.b - b.a - Expr(1), b.a - b.b);
      case BinaryOp::kLe: return decide(e, b.b - b.a, b.a - b.b - Expr(1));
      case BinaryOp::kGt: return decide(e, b.a - b.b - Expr(1), b.b - b.a);
      case BinaryOp::kGe: return decide(e, b.a - b.b, b.b - b.a - Expr(1));
      case BinaryOp::kEq:
      case BinaryOp::kNe: {
        Expr d = rewrite_sum(b.a - b.b);
        const bool equal = is_zero(d);
        if (equal) return bool_imm(b.op == BinaryOp::kEq);
        if (nonnegative(d - Expr(1)) || nonnegative(Expr(-1) - d))
          return bool_imm(b.op == BinaryOp::kNe);
        return e;
      }
      default: return e;
    }
  }
  Expr rewrite_sum(const Expr& e) { return sum(to_linear(e)); }
  // A comparison whose outcome a sign tells: either difference is at least 0 for every value in
  // range.
  Expr decide(const Expr& e, const Expr& true_if_nonnegative, const Expr& false_if_nonnegative) {
    if (nonnegative(true_if_nonnegative)) return bool_imm(true);
    if (nonnegative(false_if_nonnegative)) return bool_imm(false);
    return e;
  }
  // By intervals; then with each ranged variable replaced by the end that makes the sum least,
  // which keeps relations between variables that intervals lose (n - 1 - i for i in [0, n)).
  bool nonnegative(const Expr& e) {
    Interval i = intervals_.of(rewrite_sum(e));
    if (i.low && *i.low >= 0) return true;
    auto low = extreme(to_linear(rewrite_sum(e)), ranges_, false);
    if (!low) return false;
    i = intervals_.of(sum(*low));
    return i.low && *i.low >= 0;
  }

  // k * c * floordiv(x, c) + k * floormod(x, c) = k * x, where x may be a quotient itself;
  // k * c * floormod(floordiv(x, c), n) + k * floormod(x, c) = k * floormod(x, n * c)
  Expr sum(Linear l) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < l.terms.size() && !changed; ++i) {
        for (const Expr& f : l.terms[i].factors) {
          const auto* mod = f.as<Binary>();
          if (!mod || mod->op != BinaryOp::kFloorMod) continue;
          for (const auto& [quotient, whole] : wholes(l, *mod))
            changed = changed || merge_division(l, i, f, quotient, whole);
          if (changed) break;
        }
      }
    }
    return to_expr(l);
  }
  // What a remainder by c may be the rest of, and the quotient of that by c: x itself; floormod(x, n * c), whose
  // remainders by c are those of x; all that differs from these by multiples of c, which the remainder has lost.
  std::vector<std::pair<Expr, Expr>> wholes(const Linear& l, const Binary& mod) {
    const Expr quotient_of_all = divide(mod.a, mod.b);
    std::vector<std::pair<Expr, Expr>> found{{quotient_of_all, mod.a}};
    const auto c = as_int(mod.b);
    if (!c || *c <= 0) return found;
    const auto leaves_the_rest = [&](const Expr& x) { return congruent(x, mod.a, *c); };
    for (const LinearTerm& t : l.terms)
      for (const Expr& f : t.factors) {
        const auto* part = f.as<Binary>();
        const auto by = part ? as_int(part->b) : std::nullopt;
        if (!by || *by <= 0) continue;
        if (part->op == BinaryOp::kFloorDiv && *by == *c) {
          if (leaves_the_rest(part->a)) found.push_back({f, part->a});
        } else if (part->op == BinaryOp::kFloorMod && *by <= INT64_MAX / *c) {
          // A quotient plus what is that of multiples of c.
          const Linear all = to_linear(part->a);
          Linear more = all;
          more.add(to_linear(quotient_of_all), -1);
          if (more.terms.size() >= all.terms.size()) continue;
          const Expr whole = to_expr(more.times(to_linear(mod.b))) + mod.a;
          found.push_back({f, modulo(rewrite_sum(whole), Expr(*by * *c))});
        }
      }
    return found;
  }
  // Is floormod(x, c) = floormod(y, c) for sure? Of x = floormod(w, n) with n a multiple of c it is w that counts.
  bool congruent(const Expr& x, const Expr& y, int64_t c) {
    const auto* outer = x.as<Binary>();
    const auto n = outer && outer->op == BinaryOp::kFloorMod ? as_int(outer->b) : std::nullopt;
    if (n && *n > 0 && *n % c == 0) return congruent(outer->a, y, c);
    Linear difference = to_linear(x);
    difference.add(to_linear(y), -1);
    return floor_mod(difference.constant, c) == 0 &&
           std::all_of(difference.terms.begin(), difference.terms.end(),
                       [&](const LinearTerm& t) { return t.coefficient % c == 0; });
  }
  // The pair of terms that make up k * whole, if both are there.
  bool merge_division(Linear& l, size_t i, const Expr& mod_expr, const Expr& quotient,
                      const Expr& whole) {
    LinearTerm t = l.terms[i];
    std::vector<Expr> rest;
    bool removed = false;
    for (const Expr& f : t.factors) {
      if (!removed && f.same_as(mod_expr)) {
        removed = true;
        continue;
      }
      rest.push_back(f);
    }
    Linear wanted = to_linear(quotient).times(to_linear(mod_expr.as<Binary>()->b));
    Linear outer;
    outer.add(rest, t.coefficient);
    wanted = wanted.times(outer);
    if (wanted.terms.size() != 1 || wanted.constant != 0) return false;
    Linear test = l;
    test.add(wanted, -1);
    if (test.terms.size() != l.terms.size() - 1) return false;
    Linear mod_term;
    mod_term.add(t.factors, t.coefficient);
    test.add(mod_term, -1);
    test.add(to_linear(whole).times(outer));
    l = std::move(test);
    return true;
  }

  // Splits a sum into q * d + r: terms that d divides, and the rest.
  void split(const Linear& l, const Expr& d, Linear& q, Linear& r) {
    if (auto c = as_int(d)) {
      q.constant = floor_div(l.constant, *c);
      r.constant = floor_mod(l.constant, *c);
      for (const LinearTerm& t : l.terms) {
        if (t.coefficient % *c == 0)
          q.add(t.factors, t.coefficient / *c);
        else
          r.add(t.factors, t.coefficient);
      }
      return;
    }
    Linear divisor = to_linear(d);
    r.constant = l.constant;
    for (const LinearTerm& t : l.terms) {
      bool done = false;
      if (divisor.terms.size() == 1 && divisor.constant == 0 &&
          floor_mod(t.coefficient, divisor.terms[0].coefficient) == 0) {
        std::vector<Expr> rest = t.factors;
        done = true;
        for (const Expr& f : divisor.terms[0].factors) {
          auto it = std::find_if(rest.begin(), rest.end(),
                                 [&](const Expr& x) { return same_expr(x, f); });
          if (it == rest.end()) {
            done = false;
            break;
          }
          rest.erase(it);
        }
        if (done) q.add(rest, floor_div(t.coefficient, divisor.terms[0].coefficient));
      }
      if (!done) r.add(t.factors, t.coefficient);
    }
  }
  bool within(const Expr& r, const Expr& d) {
    return nonnegative(r) && nonnegative(d - r - Expr(1));
  }

  // floordiv(q*d + r, d) = q + floordiv(r, d), which is q when 0 <= r < d. Nested quotients merge.
  Expr divide(const Expr& a, const Expr& d) {
    auto c = as_int(d);
    if (c && *c <= 0) return floordiv(a, d);
    if (const auto* inner = a.as<Binary>();
        c && inner && inner->op == BinaryOp::kFloorDiv && as_int(inner->b).value_or(0) > 0)
      return divide(inner->a, Expr(*as_int(inner->b) * *c));
    Linear q, r;
    split(to_linear(a), d, q, r);
    if (c) r = drop_small_terms(r, *c).first;
    Expr rest = sum(r);
    if (within(rest, d)) return sum(q);
    if (c && is_by_constant(rest, BinaryOp::kFloorDiv))
      q.add(to_linear(divide(rest, d)));
    else if (const Expr merged = c ? merge_quotients(r, *c) : Expr())
      q.add(to_linear(merged));
    else if (c)
      reduce_by_gcd(r, *c, rest, d, q);
    else
      q.add({floordiv(rest, d)}, 1);
    return sum(q);
  }
  // g * x + y with 0 <= y < g, g a divisor of c: the terms of g * x, and those of y (empty when
  // there is no such split).
  std::pair<Linear, Linear> drop_small_terms(const Linear& l, int64_t c) {
    for (const LinearTerm& largest : l.terms) {
      const int64_t g = common_divisor(largest.coefficient, c);
      if (g <= 1) continue;
      Linear multiple, small;
      small.constant = floor_mod(l.constant, g);
      multiple.constant = static_cast<int64_t>(static_cast<uint64_t>(l.constant) -
                                               static_cast<uint64_t>(small.constant));
      for (const LinearTerm& t : l.terms)
        (t.coefficient % g == 0 ? multiple : small).add(t.factors, t.coefficient);
      if (small.terms.empty() && small.constant == 0) continue;
      if (within(sum(small), Expr(g))) return {multiple, small};
    }
    return {l, {}};
  }
  // floordiv(floordiv(x, g) + k, c) = floordiv(x + g * k, g * c); null for what is no such sum.
  Expr merge_quotients(const Linear& r, int64_t c) {
    if (r.terms.size() != 1 || r.terms[0].coefficient != 1 || r.terms[0].factors.size() != 1)
      return nullptr;
    const Expr& inner = r.terms[0].factors[0];
    if (!is_by_constant(inner, BinaryOp::kFloorDiv)) return nullptr;
    const auto* quotient = inner.as<Binary>();
    const int64_t g = *as_int(quotient->b);
    constexpr int64_t kMost = int64_t{1} << 31;  // products of two stay within 64 bits
    if (g >= kMost || c >= kMost || r.constant >= kMost || r.constant <= -kMost) return nullptr;
    return divide(quotient->a + Expr(g * r.constant), Expr(g * c));
  }
  // floordiv(g * x + k, g * c) = floordiv(x + floordiv(k, g), c)
  void reduce_by_gcd(const Linear& r, int64_t c, const Expr& rest, const Expr& d, Linear& q) {
    int64_t g = c;
    for (const LinearTerm& t : r.terms) g = common_divisor(t.coefficient, g);
    if (g <= 1) {
      q.add({floordiv(rest, d)}, 1);
      return;
    }
    Linear small;
    small.constant = floor_div(r.constant, g);
    for (const LinearTerm& t : r.terms) small.add(t.factors, t.coefficient / g);
    q.add(to_linear(divide(sum(small), Expr(c / g))));
  }

  // The same of remainders.
  Expr modulo(const Expr& a, const Expr& d) {
    auto c = as_int(d);
    if (c && *c <= 0) return floormod(a, d);
    if (const auto* inner = a.as<Binary>(); c && inner && inner->op == BinaryOp::kFloorMod &&
                                            as_int(inner->b).value_or(0) > 0 &&
                                            *as_int(inner->b) % *c == 0)
      return modulo(inner->a, d);
    Linear q, r;
    split(to_linear(a), d, q, r);
    Expr rest = sum(r);
    if (within(rest, d)) return rest;
    if (c) {
      auto [multiple, small] = drop_small_terms(r, *c);
      int64_t g = *c;
      for (const LinearTerm& t : multiple.terms) g = common_divisor(t.coefficient, g);
      g = common_divisor(multiple.constant, g);
      if (g > 1 && g < *c) {  // floormod(g * x + y, c) = g * floormod(x, c / g) + y
        Linear x;
        x.constant = multiple.constant / g;
        for (const LinearTerm& t : multiple.terms) x.add(t.factors, t.coefficient / g);
        Linear result;
        result.add(to_linear(modulo(sum(x), Expr(*c / g))), g);
        result.add(small);
        return sum(result);
      }
    }
    if (c && is_by_constant(rest, BinaryOp::kFloorMod) && *as_int(rest.as<Binary>()->b) % *c == 0)
      return modulo(rest, d);
    return floormod(rest, d);
  }
  // A quotient or remainder by a positive constant, which the caller can merge with its own.
  static bool is_by_constant(const Expr& e, BinaryOp op) {
    const auto* b = e.as<Binary>();
    return b && b->op == op && as_int(b->b).value_or(0) > 0;
  }

  const Ranges& ranges_;
  Intervals intervals_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> known_;  // before and after
};

}  // namespace

Expr simplify(const Expr& e, const Ranges& ranges) { return Simplify(ranges).rewrite(e); }
bool can_prove(const Expr& condition, const Ranges& ranges) {
  return is_one(simplify(condition, ranges));
}

}  // namespace tilewright::ir
