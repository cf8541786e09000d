// Arithmetic behind intervals and bounds.
#pragma once

#include <unordered_map>
#include <utility>

#include "ir/loops/simplify.h"

namespace tilewright::ir {

// Intervals of several expressions under the same ranges, which are borrowed. Large expressions may
// share parts, with one another too: those are visited once.
class Intervals {
 public:
  explicit Intervals(const Ranges& ranges) : ranges_(ranges) {}
  // As interval() (simplify.h).
  Interval of(const Expr& e);

 private:
  Interval exact(const Expr& e);
  Interval of_var(const Expr& e);
  Interval of_binary(const Binary& b);

  const Ranges& ranges_;
  int steps_ = 0;
  std::unordered_map<const ExprNode*, std::pair<Expr, Interval>> known_;
};

// The value; nothing beyond 2^56, where interval arithmetic gives up.
std::optional<int64_t> bounded(__int128 v);

// Least (or, `upper`, largest) value of a sum when each ranged variable takes its extreme value;
// ranges may be symbolic.
std::optional<Linear> extreme(Linear l, const Ranges& over, bool upper, int depth = 0);

}  // namespace tilewright::ir
