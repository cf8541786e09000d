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
  int64_t coefficient = 0;    // not 0 within a form
};
// A polynomial with integer coefficients over variables and opaque sub-expressions; equal forms are
// equal expressions, so that differences of indices cancel.
struct Linear {
  // No two with the same factors, none with coefficient 0.
  std::vector<LinearTerm> terms;
  int64_t constant = 0;

  // Adds a term or a multiple of another form; like terms merge.
  void add(std::vector<Expr> factors, int64_t coefficient);
  void add(const Linear& other, int64_t scale = 1);
  // The product, multiplied out.
  Linear times(const Linear& other) const;
  bool is_constant() const { return terms.empty(); }
  // Terms in which v is a factor of degree one, with v removed; the rest stays. Nothing when v
  // occurs inside a factor.
  std::optional<Linear> coefficient_of(const Var& v) const;
  // The terms that v is no factor of.
  Linear without(const Var& v) const;
};

// Is the value a multiple of n whatever its variables are? False when that cannot be told.
bool is_multiple(const Expr& e, int64_t n);
// To the form and back. Any i64 expression has one: what is no sum or product is a factor, and so is
// a product of very many terms or factors. to_expr keeps the order of the terms.
Linear to_linear(const Expr& e);
Expr to_expr(const Linear& l);

}  // namespace tilewright::ir
