// Multivariate polynomials over i64, kept as sums of products. Arithmetic wraps, as that of the
// expressions does, so conversion there and back never changes a value. Comparing terms is
// quadratic in their number, which is small: an index has about as many terms as loops.
#include "ir/loops/linear.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

namespace {

// A walk instead of compare.h's digests: operands are small and mostly differ at once. Of long walks
// the pairs that are equal are remembered, for expressions may have far more paths than nodes.
class SameExpr {
 public:
  bool equal(const Expr& a, const Expr& b) {
    if (a.same_as(b)) return true;
    if (a.kind() != b.kind() || a.type() != b.type()) return false;
    const bool remembers = ++steps_ > kShortWalk;
    if (remembers && equal_.count({a.get(), b.get()})) return true;
    const bool same = equal_inside(a, b);
    if (same && remembers) equal_.insert({a.get(), b.get()});
    return same;
  }

 private:
  static constexpr int kShortWalk = 256;
  bool equal_inside(const Expr& a, const Expr& b);
  int steps_ = 0;
  std::set<std::pair<const ExprNode*, const ExprNode*>> equal_;
};

bool SameExpr::equal_inside(const Expr& a, const Expr& b) {
  if (const auto* x = a.as<IntImm>()) return x->value == b.as<IntImm>()->value;
  if (const auto* x = a.as<FloatImm>()) return x->value == b.as<FloatImm>()->value;
  if (const auto* x = a.as<Binary>()) {
    const auto* y = b.as<Binary>();
    return x->op == y->op && equal(x->a, y->a) && equal(x->b, y->b);
  }
  if (const auto* x = a.as<Unary>())
    return x->op == b.as<Unary>()->op && equal(x->value, b.as<Unary>()->value);
  if (const auto* x = a.as<Ramp>()) {
    const auto* y = b.as<Ramp>();
    return equal(x->base, y->base) && equal(x->stride, y->stride);
  }
  if (const auto* x = a.as<Broadcast>()) return equal(x->value, b.as<Broadcast>()->value);
  if (const auto* x = a.as<Cast>()) return equal(x->value, b.as<Cast>()->value);
  if (const auto* x = a.as<Select>()) {
    const auto* y = b.as<Select>();
    return equal(x->condition, y->condition) && equal(x->a, y->a) && equal(x->b, y->b);
  }
  if (const auto* x = a.as<Load>()) {
    const auto* y = b.as<Load>();
    if (x->buffer != y->buffer || x->indices.size() != y->indices.size() || x->mask || y->mask)
      return false;
    for (size_t i = 0; i < x->indices.size(); ++i)
      if (!equal(x->indices[i], y->indices[i])) return false;
    return true;
  }
  return false;
}

}  // namespace

bool same_expr(const Expr& a, const Expr& b) {
  return a.same_as(b) || (a.kind() == b.kind() && SameExpr().equal(a, b));
}

namespace {
// Two's complement, as integer expressions themselves: a sum of products is exact modulo 2^64.
int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

bool same_product(const std::vector<Expr>& factors, const std::vector<Expr>& b) {
  if (factors.size() != b.size()) return false;
  if (b.size() == 1) return same_expr(factors[0], b[0]);
  std::vector<Expr> a = factors;
  for (const Expr& f : b) {
    auto it = std::find_if(a.begin(), a.end(), [&](const Expr& x) { return same_expr(x, f); });
    if (it == a.end()) return false;
    a.erase(it);
  }
  return true;
}

// Builds a form of many terms: those that may be alike are found by a hash of their factors.
class LongSum {
 public:
  explicit LongSum(Linear begin = {}) : sum_(std::move(begin)) {
    for (size_t i = 0; i < sum_.terms.size(); ++i) places_.emplace(hash(sum_.terms[i].factors), i);
  }
  void add(const Linear& other, int64_t scale) {
    sum_.constant = wrapped_sum(sum_.constant, wrapped_product(other.constant, scale));
    for (const LinearTerm& t : other.terms) add(t, wrapped_product(t.coefficient, scale));
  }
  // Terms stand in the order in which they were first added.
  Linear finish() {
    std::erase_if(sum_.terms, [](const LinearTerm& t) { return t.coefficient == 0; });
    return std::move(sum_);
  }

 private:
  void add(const LinearTerm& term, int64_t coefficient) {
    if (coefficient == 0) return;
    const size_t key = hash(term.factors);
    const auto [begin, end] = places_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      LinearTerm& mine = sum_.terms[it->second];
      if (!same_product(mine.factors, term.factors)) continue;
      mine.coefficient = wrapped_sum(mine.coefficient, coefficient);
      if (mine.coefficient == 0) places_.erase(it);
      return;
    }
    places_.emplace(key, sum_.terms.size());
    sum_.terms.push_back({term.factors, coefficient});
  }
  // Equal for the same factors in any order; variables tell terms apart, other factors by their kind.
  static size_t hash(const std::vector<Expr>& factors) {
    size_t h = 0;
    for (const Expr& f : factors)
      h += f.kind() == NodeKind::kVar ? std::hash<const ExprNode*>()(f.get())
                                      : static_cast<size_t>(f.kind());
    return h;
  }

  Linear sum_;
  std::unordered_multimap<size_t, size_t> places_;  // of terms, by hash
};

// The nodes of a sum along its first operands, outermost first.
std::vector<const Binary*> spine_of(const Expr& e) {
  std::vector<const Binary*> spine;
  for (const Binary* b = e.as<Binary>();
       b && b->type == ScalarType{} && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub);
       b = b->a.as<Binary>())
    spine.push_back(b);
  return spine;
}
constexpr size_t kLong = 16;  // terms: fewer are compared with one another
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
  if (terms.size() >= kLong && other.terms.size() >= kLong) {
    LongSum sum(std::move(*this));
    sum.add(other, scale);
    *this = sum.finish();
    return;
  }
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

namespace {
// Is the product multiplied out? Its terms are as many as those of both multiplied, and its factors as
// many as those of both together: beyond some number it stays one factor, which hides relations alone.
bool is_short_product(const Linear& a, const Linear& b) {
  constexpr size_t kMostTerms = 256, kMostFactors = 16;
  const auto degree = [](const Linear& l) {
    size_t most = 0;
    for (const LinearTerm& t : l.terms) most = std::max(most, t.factors.size());
    return most;
  };
  return (a.terms.size() <= 1 || b.terms.size() <= 1 ||
          a.terms.size() * b.terms.size() <= kMostTerms) &&
         degree(a) + degree(b) <= kMostFactors;
}
}  // namespace

namespace {

// Long walks remember the forms of sums and products, which expressions may share many times over.
class ToLinear {
 public:
  Linear form(const Expr& e) {
    if (const auto i = as_int(e)) return constant(*i);
    if (e.type() != ScalarType{} || (!e.as<Binary>() && !e.as<Unary>())) return factor(e);
    const bool remembers = ++steps_ > kShortWalk;
    if (remembers)
      if (const auto it = known_.find(e.get()); it != known_.end()) return it->second;
    Linear l = inside(e);
    if (remembers) known_.emplace(e.get(), l);
    return l;
  }

 private:
  static constexpr int kShortWalk = 256;
  static Linear constant(int64_t value) {
    Linear l;
    l.constant = value;
    return l;
  }
  static Linear factor(const Expr& e) {
    Linear l;
    l.add({e}, 1);
    return l;
  }
  Linear inside(const Expr& e) {
    const auto* b = e.as<Binary>();
    if (b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub)) {
      if (const auto spine = spine_of(e); spine.size() >= kLong) {
        LongSum sum(form(spine.back()->a));
        for (size_t k = spine.size(); k-- > 0;)
          sum.add(form(spine[k]->b), spine[k]->op == BinaryOp::kAdd ? 1 : -1);
        return sum.finish();
      }
      Linear l = form(b->a);
      l.add(form(b->b), b->op == BinaryOp::kAdd ? 1 : -1);
      return l;
    }
    if (b && b->op == BinaryOp::kMul) {
      const Linear left = form(b->a), right = form(b->b);
      if (is_short_product(left, right)) return left.times(right);
    }
    if (const auto* u = e.as<Unary>(); u && u->op == UnaryOp::kNeg) {
      Linear l;
      l.add(form(u->value), -1);
      return l;
    }
    return factor(e);
  }

  int steps_ = 0;
  std::unordered_map<const ExprNode*, Linear> known_;
};

}  // namespace

Linear to_linear(const Expr& e) { return ToLinear().form(e); }

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
