// The rows that a normalisation goes over: all dimensions before `axis` number them.
#pragma once

#include <vector>

#include "ir/graph/compute.h"

namespace tilewright::ir {

struct NormRows {
  std::vector<Expr> outer, inner;
  Expr count = 1;  // of elements of a row

  NormRows(const std::vector<Expr>& shape, int axis)
      : outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end()) {
    for (const Expr& e : inner) count = count * e;
  }
  // The row of an element, and an element of a row.
  Axes of(const Axes& i) const { return {i.begin(), i.begin() + static_cast<long>(outer.size())}; }
  static Axes join(Axes row, const Axes& inside) {
    row.insert(row.end(), inside.begin(), inside.end());
    return row;
  }
};

}  // namespace tilewright::ir
