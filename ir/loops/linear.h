// Integer expressions as sums of products: constant + sum of coefficient * (product of factors).
// The canonical form behind `simplify`, access strides and bounds.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

bool same_expr(const Expr& a, const Expr& b);  // structurally equal, variables by identity

struct LinearTerm {
  std::vector<Expr> factors;  // each neither sum nor constant; order is canonical within one form
  int64_t coefficient = 0;
};
struct Linear {
  std::vector<LinearTerm> terms;
  int64_t constant = 0;

  void add(std::vector<Expr> factors, int64_t coefficient);
  void add(const Linear& other, int64_t scale = 1);
  Linear times(const Linear& other) const;
  bool is_constant() const { return terms.empty(); }
  // Terms in which v is a factor of degree one, with v removed; the rest stays. Nothing when v
  // occurs inside a factor.
  std::optional<Linear> coefficient_of(const Var& v) const;
  Linear without(const Var& v) const;
};

// Is the value a multiple of n whatever its variables are? False when that cannot be told.
bool is_multiple(const Expr& e, int64_t n);
Linear to_linear(const Expr& e);
Expr to_expr(const Linear& l);

}  // namespace tilewright::ir
