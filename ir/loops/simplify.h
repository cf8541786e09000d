// Algebraic simplification of expressions under known ranges of variables.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/loops/linear.h"
#include "ir/loops/nodes.h"

namespace tilewright::ir {

// What is known of variables: v in [min, min + extent). Variables not listed are free; free symbols
// of tensor types are taken as at least 0.
// The context of a proof: loop variables with the ranges that their loops give them.
class Ranges {
 public:
  // [0, extent), or [min, min + extent). A later set replaces the earlier one.
  void set(const Var& v, Expr extent) { set(v, Expr(0), std::move(extent)); }
  void set(const Var& v, Expr min, Expr extent) {
    ranges_[v.get()] = {std::move(min), std::move(extent)};
  }
  struct Range {
    // May name other variables in range, but not in a circle.
    Expr min, extent;
  };
  // Null for what has no range.
  const Range* find(const Expr& v) const {
    auto it = ranges_.find(v.get());
    return it == ranges_.end() ? nullptr : &it->second;
  }

 private:
  std::unordered_map<const ExprNode*, Range> ranges_;
};

struct Interval {  // absent: unbounded on that side
  // Both included.
  std::optional<int64_t> low, high;
};

// The same value in the same type. Sums and products of int64, which are indices and extents, are
// taken not to overflow; those of other types wrap and stay as they are.
Expr simplify(const Expr& e, const Ranges& ranges = {});
// Bounds by interval arithmetic: sound, not always tight.
Interval interval(const Expr& e, const Ranges& ranges = {});
// True only when the condition holds for every value in range.
bool can_prove(const Expr& condition, const Ranges& ranges = {});
// Their difference simplifies to 0; false says nothing.
inline bool can_prove_equal(const Expr& a, const Expr& b, const Ranges& ranges = {}) {
  return is_zero(simplify(a - b, ranges));
}
// Largest and smallest value of e as variables run through the ranges of `over`; exact for sums,
// conservative otherwise. Null when no bound can be given.
Expr upper_bound(const Expr& e, const Ranges& over);
Expr lower_bound(const Expr& e, const Ranges& over);
// Widens [low, high], null at first, to hold [l, h]; false when it cannot be told which is further.
bool widen(Expr& low, Expr& high, const Expr& l, const Expr& h);

}  // namespace tilewright::ir
