#include "passes/cost/loop_counts.h"

#include <algorithm>

#include "passes/analysis/extents.h"

namespace tilewright::passes {

using namespace ir;

int64_t iterations(const For& loop, const Ranges& around) {
  const auto high = interval(loop.extent, around).high;
  return std::max<int64_t>(high.value_or(kUnknownExtent), 1);
}

double likelihood(const Expr& condition, const Ranges& around) {
  constexpr double kEven = 0.5;
  if (const auto value = as_int(condition)) return *value != 0 ? 1 : 0;
  if (const auto* u = condition.as<Unary>())
    return u->op == UnaryOp::kNot ? 1 - likelihood(u->value, around) : kEven;
  const auto* c = condition.as<Binary>();
  if (!c) return kEven;
  if (c->op == BinaryOp::kAnd) return likelihood(c->a, around) * likelihood(c->b, around);
  if (c->op == BinaryOp::kOr)
    return 1 - (1 - likelihood(c->a, around)) * (1 - likelihood(c->b, around));
  if (c->a.type() != ScalarType{}) return kEven;
  const Interval d = interval(simplify(c->a - c->b, around), around);
  if (!d.low || !d.high) return kEven;
  const auto low = static_cast<double>(*d.low), high = static_cast<double>(*d.high);
  // Of the values low..high of a - b, those up to x.
  const auto up_to = [&](double x) {
    return std::clamp((x - low + 1) / (high - low + 1), 0.0, 1.0);
  };
  switch (c->op) {
    case BinaryOp::kLt: return up_to(-1);
    case BinaryOp::kLe: return up_to(0);
    case BinaryOp::kGt: return 1 - up_to(0);
    case BinaryOp::kGe: return 1 - up_to(-1);
    case BinaryOp::kEq: return up_to(0) - up_to(-1);
    case BinaryOp::kNe: return 1 - (up_to(0) - up_to(-1));
    default: return kEven;
  }
}

}  // namespace tilewright::passes
