// Multivariate polynomials over i64, kept as sums of products. Arithmetic wraps, as that of the
// expressions does, so conversion there and back never changes a value. Comparing terms is
// quadratic in their number, which is small: an index has about as many terms as loops.
#include "ir/loops/linear.h"

#include <algorithm>

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

// A walk instead of compare.h's digests: operands are small and mostly differ at once.
bool same_expr(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (a.kind() != b.kind() || a.type() != b.type()) return false;
  if (const auto* x = a.as<IntImm>()) return x->value == b.as<IntImm>()->value;
  if (const auto* x = a.as<FloatImm>()) return x->value == b.as<FloatImm>()->value;
  if (const auto* x = a.as<Binary>()) {
    const auto* y = b.as<Binary>();
    return x->op == y->op && same_expr(x->a, y->a) && same_expr(x->b, y->b);
  }
  if (const auto* x = a.as<Unary>())
    return x->op == b.as<Unary>()->op && same_expr(x->value, b.as<Unary>()->value);
  if (const auto* x = a.as<Ramp>()) {
    const auto* y = b.as<Ramp>();
    return same_expr(x->base, y->base) && same_expr(x->stride, y->stride);
  }
  if (const auto* x = a.as<Broadcast>()) return same_expr(x->value, b.as<Broadcast>()->value);
  if (const auto* x = a.as<Cast>()) return same_expr(x->value, b.as<Cast>()->value);
  if (const auto* x = a.as<Select>()) {
    const auto* y = b.as<Select>();
    return same_expr(x->condition, y->condition) && same_expr(x->a, y->a) && same_expr(x->b, y->b);
  }
  if (const auto* x = a.as<Load>()) {
    const auto* y = b.as<Load>();
    if (x->buffer != y->buffer || x->indices.size() != y->indices.size() || x->mask || y->mask)
      return false;
    for (size_t i = 0; i < x->indices.size(); ++i)
      if (!same_expr(x->indices[i], y->indices[i])) return false;
    return true;
  }
  return false;
}

namespace {
// Two's complement, as integer expressions themselves: a sum of products is exact modulo 2^64.
int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

bool same_product(std::vector<Expr> a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (const Expr& f : b) {
    auto it = std::find_if(a.begin(), a.end(), [&](const Expr& x) { return same_expr(x, f); });
    if (it == a.end()) return false;
    a.erase(it);
  }
  return true;
}
}  // namespace

void Linear::add(std::vector<Expr> factors, int64_t coefficient) {
  if (coefficient == 0) return;
  if (factors.empty()) {
    constant = wrapped_sum(constant, coefficient);
    return;
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!same_product(terms[i].factors, factors)) continue;
    terms[i].coefficient = wrapped_sum(terms[i].coefficient, coefficient);
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<long>(i));
    return;
  }
  terms.push_back({std::move(factors), coefficient});
}

void Linear::add(const Linear& other, int64_t scale) {
  constant = wrapped_sum(constant, wrapped_product(other.constant, scale));
  for (const LinearTerm& t : other.terms) add(t.factors, wrapped_product(t.coefficient, scale));
}

Linear Linear::times(const Linear& other) const {
  Linear r;
  r.add(other, constant);
  for (const LinearTerm& t : terms) {
    r.add(t.factors, wrapped_product(t.coefficient, other.constant));
    for (const LinearTerm& o : other.terms) {
      std::vector<Expr> product = t.factors;
      product.insert(product.end(), o.factors.begin(), o.factors.end());
      r.add(std::move(product), wrapped_product(t.coefficient, o.coefficient));
    }
  }
  return r;
}

std::optional<Linear> Linear::coefficient_of(const Var& v) const {
  Linear r;
  for (const LinearTerm& t : terms) {
    std::vector<Expr> rest;
    int degree = 0;
    for (const Expr& f : t.factors) {
      if (f.same_as(v))
        ++degree;
      else if (uses_var(f, v))
        return std::nullopt;
      else
        rest.push_back(f);
    }
    if (degree > 1) return std::nullopt;
    if (degree == 1) r.add(rest, t.coefficient);
  }
  return r;
}

Linear Linear::without(const Var& v) const {
  Linear r;
  r.constant = constant;
  for (const LinearTerm& t : terms)
    if (std::none_of(t.factors.begin(), t.factors.end(),
                     [&](const Expr& f) { return f.same_as(v); }))
      r.terms.push_back(t);
  return r;
}

Linear to_linear(const Expr& e) {
  Linear l;
  if (auto i = as_int(e)) {
    l.constant = *i;
    return l;
  }
  if (e.type() != ScalarType{}) {
    l.add({e}, 1);
    return l;
  }
  if (const auto* b = e.as<Binary>()) {
    if (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub) {
      l = to_linear(b->a);
      l.add(to_linear(b->b), b->op == BinaryOp::kAdd ? 1 : -1);
      return l;
    }
    if (b->op == BinaryOp::kMul) return to_linear(b->a).times(to_linear(b->b));
  }
  if (const auto* u = e.as<Unary>(); u && u->op == UnaryOp::kNeg) {
    l.add(to_linear(u->value), -1);
    return l;
  }
  l.add({e}, 1);
  return l;
}

bool is_multiple(const Expr& e, int64_t n) {
  const Linear l = to_linear(e);
  bool all = l.constant % n == 0;
  for (const LinearTerm& t : l.terms) all &= t.coefficient % n == 0;
  return all;
}

Expr to_expr(const Linear& l) {
  Expr sum;
  for (const LinearTerm& t : l.terms) {
    Expr product;
    for (const Expr& f : t.factors) product = product ? product * f : f;
    const int64_t c = t.coefficient;
    if (!sum)
      sum = c == 1 ? product : product * Expr(c);
    else if (c < 0)
      sum = sum - (c == -1 ? product : product * -Expr(c));
    else
      sum = sum + (c == 1 ? product : product * Expr(c));
  }
  if (!sum) return Expr(l.constant);
  if (l.constant > 0) return sum + Expr(l.constant);
  if (l.constant < 0) return sum - -Expr(l.constant);
  return sum;
}

}  // namespace tilewright::ir
