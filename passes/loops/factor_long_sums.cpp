// Addresses in values whose extents are sums of many symbols: factors that terms have in common
// stand once, before the sum of what they multiply, which does not vary where they do.
//
//    i * s0 + i * s1 + ... + i * s40 + j    ->    i * (s0 + s1 + ... + s40) + j
//
// Code generation takes longer than in proportion to the terms of a sum that vary in a loop.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr size_t kLong = 16;  // terms

class FactorLongSums : public Rewriter {
 public:
  explicit FactorLongSums(const std::vector<Var>& scalars) {
    for (const Var& s : scalars) scalars_.insert(s.get());
  }
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* sum = e.type() == ScalarType{} ? e.as<Binary>() : nullptr;
    if (!sum || (sum->op != BinaryOp::kAdd && sum->op != BinaryOp::kSub) || !is_long(e))
      return Rewriter::rewrite(e);
    Linear all = to_linear(e), fixed, varying;
    for (LinearTerm& t : all.terms) (is_fixed(t) ? fixed : varying).terms.push_back(std::move(t));
    varying.constant = all.constant;
    if (fixed.terms.empty()) return factored(std::move(varying));
    if (varying.terms.empty() && varying.constant == 0) return to_expr(fixed);
    return factored(std::move(varying)) + to_expr(fixed);
  }

 private:
  bool is_fixed(const LinearTerm& t) const {
    return std::all_of(t.factors.begin(), t.factors.end(),
                       [&](const Expr& f) { return scalars_.count(f.get()) != 0; });
  }
  static bool is_long(const Expr& e) {
    size_t length = 0;
    for (const Binary* b = e.as<Binary>();
         b && length < kLong && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub);
         b = b->a.as<Binary>())
      ++length;
    return length >= kLong;
  }
  // The variable that is a factor of most terms, of more than half of kLong at least; null: none is.
  static Expr common_factor(const Linear& l) {
    std::unordered_map<const ExprNode*, size_t> counts;
    Expr most;
    size_t count = kLong / 2;
    for (const LinearTerm& t : l.terms)
      for (const Expr& f : t.factors)
        if (t.factors.size() > 1 && f.kind() == NodeKind::kVar && ++counts[f.get()] > count) {
          most = f;
          count = counts[f.get()];
        }
    return most;
  }
  static Expr factored(Linear l) {
    Expr result;
    while (const Expr factor = common_factor(l)) {
      Linear inside, rest;
      rest.constant = l.constant;
      for (LinearTerm& t : l.terms) {
        const auto at = std::find_if(t.factors.begin(), t.factors.end(),
                                     [&](const Expr& f) { return f.same_as(factor); });
        const bool has = at != t.factors.end();
        if (has) t.factors.erase(at);
        if (has)
          inside.add(std::move(t.factors), t.coefficient);
        else
          rest.terms.push_back(std::move(t));
      }
      const Expr product = factor * factored(std::move(inside));
      result = result ? result + product : product;
      l = std::move(rest);
    }
    if (!result) return to_expr(l);
    return l.terms.empty() && l.constant == 0 ? result : result + to_expr(l);
  }

  std::unordered_set<const ExprNode*> scalars_;
};

}  // namespace

Kernel factor_long_sums(Kernel kernel) {
  kernel.body = FactorLongSums(kernel.scalars).rewrite(kernel.body);
  return kernel;
}

}  // namespace tilewright::passes
