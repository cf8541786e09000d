// Proofs that integers are at least 0, from ranges of variables and from conditions that hold.
#pragma once

#include <vector>

#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

class Proof;

// What holds at one place of a kernel: the ranges of the loops around it, and the conditions on the way to it.
class Facts {
 public:
  // What holds so far, to go back to.
  struct Mark {
    size_t facts, conditions;
  };
  Mark mark() const { return {facts_.size(), conditions_.size()}; }
  void forget(Mark m) {
    facts_.resize(m.facts);
    conditions_.resize(m.conditions);
  }
  // Adds what follows from the condition when it holds, or when it does not. Only comparisons of i64
  // expressions, joined by "and" and "or", say anything.
  void assume(const Expr& condition, bool holds);
  // Adds that the i64 expression is at least 0.
  void assume_nonnegative(const Expr& e) { facts_.push_back(to_linear(simplify(e, ranges_))); }
  // Adds that two extents are equal, or that one of them is 1.
  void assume_broadcast(const Expr& a, const Expr& b);
  // Sets the range of a variable to [min, min + extent).
  void set_range(const Var& v, Expr min, Expr extent) {
    ranges_.set(v, std::move(min), std::move(extent));
  }
  // Sets a loop's variable to run over [0, extent); its body runs only where the extent is at least 1.
  void enter_loop(const Var& v, const Expr& extent);

  // True only when the i64 expression is at least 0 wherever the facts hold. Minima, maxima, selects, quotients and
  // remainders are split into their cases, up to a bound on the number of steps; each case takes two of the facts
  // at most.
  bool proves_nonnegative(const Expr& e) const;
  bool proves_less(const Expr& a, const Expr& b) const {
    return proves_nonnegative(b - a - Expr(1));
  }
  const Ranges& ranges() const { return ranges_; }

 private:
  friend class Proof;
  void assume_chosen(const Select& s, bool holds);
  void assume_differ(const Expr& a, const Expr& b);
  Ranges ranges_;
  std::vector<Linear> facts_;                        // each at least 0
  std::vector<std::pair<Expr, bool>> conditions_;    // assumed, as they stand
  std::vector<std::pair<int64_t, Expr>> broadcast_;  // the second is the first, or 1
};

}  // namespace tilewright::ir
