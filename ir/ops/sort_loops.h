// Pieces of loop programs: mutable scalars, and a stable sort.
#pragma once

#include <functional>

#include "ir/graph/compute.h"

namespace tilewright::ir {

// A few mutable int64 scalars of a loop program.
class Scalars {
 public:
  // `count` of them, uninitialised.
  explicit Scalars(int count)
      : buffer_(make_buffer("state", DType::kInt64, {Expr(count)}, Scope::kLocal)) {}
  // Number k: its value now, and statements that change it.
  Expr get(int k) const { return load(buffer_, {Expr(k)}); }
  Stmt set(int k, Expr value) const { return store(buffer_, {Expr(k)}, std::move(value)); }
  Stmt add(int k, const Expr& value) const { return set(k, get(k) + value); }
  // The body with the scalars allocated around it.
  Stmt around(Stmt body) const { return allocate(buffer_, std::move(body)); }

 private:
  Buffer buffer_;
};

// body(axes) for each point of `extents`, in order.
Stmt loop_nest(const std::vector<Expr>& extents, const std::function<Stmt(const Axes&)>& body);
// body(v) with `value` bound to v.
Stmt with_value(const std::string& name, const Expr& value,
                const std::function<Stmt(const Expr&)>& body);
// Indices of element `flat` of a row-major tensor.
Axes unravel(Expr flat, const std::vector<Expr>& shape);

// Stores into result[0] (i64) -1 when element a belongs before element b, 0 when they are equal, 1
// otherwise.
using Compare =
    std::function<Stmt(const Expr& a, const Expr& b, const std::function<Stmt(Expr)>& result)>;
// Is a above b? NaN is above all numbers, and not above itself.
Expr is_above(const Expr& a, const Expr& b);
// Ascending order of two numbers, NaN last and equal to itself.
Expr three_way(const Expr& a, const Expr& b);

// body, with order (i64[n]) holding the numbers 0 .. n-1, sorted stably by a bottom-up merge.
Stmt with_sorted(const Expr& n, const Compare& compare,
                 const std::function<Stmt(const Buffer& order)>& body);

}  // namespace tilewright::ir
