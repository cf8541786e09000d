// Abstract interpretation of vector indices in the domain "a scalar linear form + one known number
// per lane". Sums, products by numbers and divisions whose scalar part divides evenly stay in it:
//
//    ramp(8*i, 1, 8) / 2                4*i + {0,0,1,1,2,2,3,3}
//    broadcast(j) * 3 + ramp(0, 1, 4)   3*j + {0,1,2,3}
//
// What leaves the domain (loads, products of unknowns) gives nothing, and the access is a gather.
#include "codegen/cpu/lane_indices.h"

#include <algorithm>
#include <bit>

#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"
#include "ir/loops/whole_numbers.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

// An element of the domain; lanes_of() is the interpretation, by node.
struct Lanes {
  Linear base;  // without a constant
  std::vector<int64_t> offsets;
};
using MaybeLanes = std::optional<Lanes>;

MaybeLanes lanes_of(const Expr& e);

Lanes from_scalar(const Expr& base, int64_t stride, int lanes) {
  Lanes r{to_linear(base), {}};
  for (int i = 0; i < lanes; ++i) r.offsets.push_back(r.base.constant + i * stride);
  r.base.constant = 0;
  return r;
}
bool same_base(const Lanes& a, const Lanes& b) {
  return can_prove_equal(to_expr(a.base), to_expr(b.base));
}
// The number that all lanes hold.
std::optional<int64_t> one_number(const Lanes& x) {
  const bool same =
      std::all_of(x.offsets.begin(), x.offsets.end(), [&](int64_t o) { return o == x.offsets[0]; });
  return x.base.terms.empty() && same ? std::optional(x.offsets[0]) : std::nullopt;
}
// floor((n*b + o) / n) = b + floor(o / n) for whole b: the scalar part must be a multiple of n.
MaybeLanes quotient(Lanes x, const Lanes& y, bool remainder) {
  const auto n = one_number(y);
  if (!n || *n <= 0 || !is_multiple(to_expr(x.base), *n)) return std::nullopt;
  for (int64_t& o : x.offsets) o = remainder ? floor_mod(o, *n) : floor_div(o, *n);
  for (LinearTerm& t : x.base.terms) t.coefficient /= *n;
  if (remainder) x.base.terms.clear();
  return x;
}
MaybeLanes product(const Lanes& x, const Lanes& y) {
  const auto n = one_number(y);
  if (!n) return std::nullopt;
  Lanes r{{}, x.offsets};
  r.base.add(x.base, *n);
  for (int64_t& o : r.offsets) o *= *n;
  return r;
}
int64_t compare(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kGt: return a > b;
    default: return a >= b;
  }
}
// Equal scalar parts cancel, so that the lanes' numbers decide; minimum and maximum keep the part.
MaybeLanes compared(BinaryOp op, Lanes x, const Lanes& y) {
  if (!same_base(x, y)) return std::nullopt;
  for (size_t i = 0; i < x.offsets.size(); ++i)
    x.offsets[i] = compare(op, x.offsets[i], y.offsets[i]);
  if (op != BinaryOp::kMin && op != BinaryOp::kMax) x.base.terms.clear();
  return x;
}
MaybeLanes lanes_of(const Binary& b) {
  MaybeLanes x = lanes_of(b.a), y = lanes_of(b.b);
  if (!x || !y) return std::nullopt;
  switch (b.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      const int64_t sign = b.op == BinaryOp::kAdd ? 1 : -1;
      x->base.add(y->base, sign);
      for (size_t i = 0; i < x->offsets.size(); ++i) x->offsets[i] += sign * y->offsets[i];
      return x;
    }
    case BinaryOp::kMul: {
      MaybeLanes r = product(*x, *y);
      return r ? r : product(*y, *x);
    }
    case BinaryOp::kFloorDiv: return quotient(*x, *y, false);
    case BinaryOp::kFloorMod: return quotient(*x, *y, true);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: return compared(b.op, *x, *y);
    default: return std::nullopt;
  }
}
MaybeLanes lanes_of(const Select& s) {
  MaybeLanes c = lanes_of(s.condition), x = lanes_of(s.a), y = lanes_of(s.b);
  if (!c || !x || !y || !c->base.terms.empty() || !same_base(*x, *y)) return std::nullopt;
  for (size_t i = 0; i < x->offsets.size(); ++i)
    if (!c->offsets[i]) x->offsets[i] = y->offsets[i];
  return x;
}
MaybeLanes lanes_of(const Expr& e) {
  if (const auto* r = e.as<Ramp>(); r && r->base.lanes() == 1) {
    const auto stride = as_int(r->stride);
    return stride ? MaybeLanes(from_scalar(r->base, *stride, e.lanes())) : std::nullopt;
  }
  if (const auto* b = e.as<Broadcast>()) {
    if (b->value.dtype() != DType::kInt64 && !as_int(b->value)) return std::nullopt;
    return b->value.lanes() == 1 ? MaybeLanes(from_scalar(b->value, 0, e.lanes())) : std::nullopt;
  }
  if (const auto* s = e.as<Select>()) return lanes_of(*s);
  const auto* b = e.as<Binary>();
  if (!b || b->a.dtype() != DType::kInt64) return std::nullopt;
  return lanes_of(*b);
}

void add_to(Expr& sum, const Expr& e) {
  if (e) sum = sum ? sum + e : e;
}

}  // namespace

std::optional<KnownLanes> known_lanes(const Expr& vector) {
  MaybeLanes x = lanes_of(vector);
  if (!x) return std::nullopt;
  return KnownLanes{to_expr(x->base), std::move(x->offsets)};
}

SplitIndex split_index(const Expr& index) {
  if (const auto* b = index.as<Broadcast>(); b && b->value.lanes() == 1) return {b->value, nullptr};
  if (const auto* r = index.as<Ramp>(); r && r->base.lanes() == 1)
    return {r->base, ramp(Expr(0), r->stride, index.lanes())};
  const auto* sum = index.as<Binary>();
  if (!sum || sum->op != BinaryOp::kAdd) return {nullptr, index};
  SplitIndex r = split_index(sum->a);
  const SplitIndex more = split_index(sum->b);
  add_to(r.uniform, more.uniform);
  add_to(r.rest, more.rest);
  return r;
}

std::optional<ShuffledRead> shuffled_read(const std::vector<int64_t>& offsets,
                                          const std::vector<bool>& on) {
  std::optional<int64_t> low, high;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (!on[i]) continue;
    low = std::min(low.value_or(offsets[i]), offsets[i]);
    high = std::max(high.value_or(offsets[i]), offsets[i]);
  }
  if (!low || *high - *low >= 2 * static_cast<int64_t>(offsets.size())) return std::nullopt;
  const auto span = static_cast<uint64_t>(*high - *low + 1);
  ShuffledRead r;
  r.count = static_cast<int>(std::bit_floor(span));
  r.first = *low;
  r.second = *high - r.count + 1;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t at = offsets[i] - r.first;
    r.lanes.push_back(static_cast<int>(!on[i]         ? -1
                                       : at < r.count ? at
                                                      : offsets[i] - r.second + r.count));
  }
  return r;
}

}  // namespace tilewright::cpu
