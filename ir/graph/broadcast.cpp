#include "ir/graph/broadcast.h"

#include <algorithm>
#include <vector>

#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

// Returns b if a is 1 at run time, and a otherwise.
Expr unless_one(const Expr& a, const Expr& b) { return select(eq(a, Expr(1)), b, a); }

struct Alternative {
  Expr extent, otherwise;
};
// Takes apart an expression that unless_one built; returns nothing for any other.
std::optional<Alternative> as_alternative(const Expr& e) {
  const auto* choice = e.as<Select>();
  const auto* test = choice ? choice->condition.as<Binary>() : nullptr;
  if (!test || test->op != BinaryOp::kEq || !is_one(test->b) || !same_expr(test->a, choice->b))
    return std::nullopt;
  return Alternative{choice->b, choice->a};
}

// Appends to `all` the distinct extents from which e was joined.
void add_extents(Expr e, std::vector<Expr>& all) {
  const auto add = [&](const Expr& extent) {
    if (std::none_of(all.begin(), all.end(),
                     [&](const Expr& other) { return can_prove_equal(extent, other); }))
      all.push_back(extent);
  };
  for (auto next = as_alternative(e); next; next = as_alternative(e)) {
    add(next->extent);
    e = next->otherwise;
  }
  add(e);
}

bool is_never_one(const Expr& e) {
  const Interval i = interval(e);
  return (i.low && *i.low > 1) || (i.high && *i.high < 1);
}

}  // namespace

std::optional<Expr> broadcast_extent(const Expr& a, const Expr& b) {
  if (is_one(a) || can_prove_equal(a, b)) return is_one(a) ? b : a;
  if (is_one(b)) return a;
  if (as_int(a) && as_int(b)) return std::nullopt;
  for (const Expr& e : {a, b})
    if (as_int(e)) return e;
  for (const Expr& e : {a, b})
    if (is_never_one(e)) return e;
  std::vector<Expr> extents;
  add_extents(a, extents);
  add_extents(b, extents);
  Expr joined = extents.back();
  for (size_t k = extents.size() - 1; k-- > 0;) joined = unless_one(extents[k], joined);
  return joined;
}

bool may_repeat(const Expr& from, const Expr& to) {
  return !is_one(from) && !can_prove_equal(from, to) && !is_never_one(from);
}

std::vector<Expr> joined_extents(const Expr& e) {
  std::vector<Expr> extents;
  add_extents(e, extents);
  return extents;
}

}  // namespace tilewright::ir
