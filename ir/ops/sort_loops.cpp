// Sorting written in the loop IR itself, so that the interpreter and every backend have it:
// bottom-up merge sort of indices, stable, O(n log n) comparisons, one spare array. Serial: rows
// are what runs in parallel.
#include "ir/ops/sort_loops.h"

#include "ir/loops/simplify.h"

namespace tilewright::ir {

Stmt loop_nest(const std::vector<Expr>& extents, const std::function<Stmt(const Axes&)>& body) {
  std::vector<Var> vars;
  for (size_t d = 0; d < extents.size(); ++d) vars.push_back(Var("u" + std::to_string(d)));
  Stmt s = body(Axes(vars.begin(), vars.end()));
  for (size_t d = extents.size(); d-- > 0;) s = for_loop(vars[d], extents[d], s);
  return s;
}
Stmt with_value(const std::string& name, const Expr& value,
                const std::function<Stmt(const Expr&)>& body) {
  Var v(name, value.type());
  return let(v, value, body(v));
}
Axes unravel(Expr flat, const std::vector<Expr>& shape) {
  Axes at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = d == 0 ? flat : floormod(flat, shape[d]);
    flat = floordiv(flat, shape[d]);
  }
  return at;
}

Expr is_above(const Expr& a, const Expr& b) {
  if (!is_float(a.dtype())) return a > b;
  return select(a <= b, bool_imm(false), logical_not(unary(UnaryOp::kIsNan, b)));
}
Expr three_way(const Expr& a, const Expr& b) {
  Expr less = a<b, more = a> b;
  if (is_float(a.dtype())) {
    Expr a_nan = unary(UnaryOp::kIsNan, a), b_nan = unary(UnaryOp::kIsNan, b);
    less = logical_or(less, logical_and(b_nan, logical_not(a_nan)));
    more = logical_or(more, logical_and(a_nan, logical_not(b_nan)));
  }
  return select(less, Expr(-1), select(more, Expr(1), Expr(0)));
}

namespace {

enum : int { kWidth, kLeft, kRight, kOrder };

// Merges the runs [low, mid) and [mid, high) of `order` into `spare`.
Stmt merge_runs(const Scalars& s, const Buffer& order, const Buffer& spare, const Expr& low,
                const Expr& mid, const Expr& high, const Compare& compare) {
  auto set = [&](Expr e) { return s.set(kOrder, std::move(e)); };
  Stmt merge = loop_nest({high - low}, [&](const Axes& k) {
    auto take = [&](int side) {
      return seq({store(spare, {low + k[0]}, load(order, {s.get(side)})), s.add(side, 1)});
    };
    Stmt both = with_value("a", load(order, {s.get(kLeft)}), [&](const Expr& a) {
      return with_value("b", load(order, {s.get(kRight)}),
                        [&](const Expr& b) { return compare(b, a, set); });
    });
    // The left side is taken unless it is used up or the right one belongs before it.
    Stmt choose = if_then(s.get(kLeft) < mid, if_then(s.get(kRight) < high, both, set(Expr(0))),
                          set(Expr(-1)));
    return seq({choose, if_then(s.get(kOrder) < Expr(0), take(kRight), take(kLeft))});
  });
  return seq({s.set(kLeft, low), s.set(kRight, mid), merge});
}

}  // namespace

Stmt with_sorted(const Expr& n, const Compare& compare,
                 const std::function<Stmt(const Buffer&)>& body) {
  const Scalars s(4);
  Buffer order = make_buffer("order", DType::kInt64, {n}, Scope::kWorkspace),
         spare = make_buffer("spare", DType::kInt64, {n}, Scope::kWorkspace);
  Stmt fill = loop_nest({n}, [&](const Axes& i) { return store(order, i, i[0]); });
  Stmt pass = with_value("width", s.get(kWidth), [&](const Expr& width) {
    Stmt runs = loop_nest({ceildiv(n, width * 2)}, [&](const Axes& run) {
      return with_value("low", run[0] * width * 2, [&](const Expr& low) {
        return with_value("mid", min(low + width, n), [&](const Expr& mid) {
          return with_value("high", min(low + width * 2, n), [&](const Expr& high) {
            return merge_runs(s, order, spare, low, mid, high, compare);
          });
        });
      });
    });
    Stmt back = loop_nest({n}, [&](const Axes& i) { return store(order, i, load(spare, i)); });
    return seq({runs, back, s.set(kWidth, width * 2)});
  });
  Stmt sort = s.around(seq({s.set(kWidth, 1), while_loop(s.get(kWidth) < n, pass)}));
  return allocate(order, seq({fill, allocate(spare, sort), body(order)}));
}

}  // namespace tilewright::ir
