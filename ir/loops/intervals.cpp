// Interval arithmetic: bounds of an expression from bounds of its variables (Moore, 1966), sound
// for every operation and loose where a variable occurs twice. Ends beyond 2^56 count as unbounded,
// so that nothing here overflows. Free i64 symbols are extents, and so at least 0.
#include "ir/loops/intervals.h"

#include <algorithm>

#include "ir/loops/whole_numbers.h"

namespace tilewright::ir {

std::optional<int64_t> bounded(__int128 v) {
  constexpr int64_t kHuge = int64_t{1} << 56;
  if (v > kHuge || v < -kHuge) return std::nullopt;
  return static_cast<int64_t>(v);
}

namespace {

Interval add(const Interval& a, const Interval& b) {
  Interval r;
  if (a.low && b.low) r.low = bounded(static_cast<__int128>(*a.low) + *b.low);
  if (a.high && b.high) r.high = bounded(static_cast<__int128>(*a.high) + *b.high);
  return r;
}
Interval scale(const Interval& a, int64_t c) {
  if (c == 0) return {0, 0};
  Interval r;
  if (a.low) (c > 0 ? r.low : r.high) = bounded(static_cast<__int128>(*a.low) * c);
  if (a.high) (c > 0 ? r.high : r.low) = bounded(static_cast<__int128>(*a.high) * c);
  return r;
}
// Exact for a constant factor, and for operands that are not negative; nothing otherwise.
Interval multiply(const Interval& a, const Interval& b) {
  if (a.low && a.high && *a.low == *a.high) return scale(b, *a.low);
  if (b.low && b.high && *b.low == *b.high) return scale(a, *b.low);
  if (!a.low || !b.low || *a.low < 0 || *b.low < 0) return {};
  Interval r;
  r.low = bounded(static_cast<__int128>(*a.low) * *b.low);
  if (a.high && b.high) r.high = bounded(static_cast<__int128>(*a.high) * *b.high);
  return r;
}

// All numbers of an integer type; those of 64 bits are as good as unbounded.
Interval of_type(DType t) {
  if (t == DType::kBool) return {0, 1};
  if (byte_size(t) == 8) return {};
  return {as_int(lowest(t)), as_int(highest(t))};
}
bool is_within(const Interval& i, DType t) {
  const Interval all = of_type(t);
  return (!all.low || (i.low && *i.low >= *all.low)) &&
         (!all.high || (i.high && *i.high <= *all.high));
}
Interval join(const Interval& a, const Interval& b) {
  Interval r;
  if (a.low && b.low) r.low = std::min(*a.low, *b.low);
  if (a.high && b.high) r.high = std::max(*a.high, *b.high);
  return r;
}

constexpr int kShortWalk = 256;

}  // namespace

Interval Intervals::of(const Expr& e) {
  if (e.lanes() != 1 || is_float(e.dtype()) || e.dtype() == DType::kUInt64) return {};
  // Shared parts of large expressions are visited once: these have far more paths than nodes.
  const bool remembers = ++steps_ > kShortWalk && (e.as<Binary>() || e.as<Select>());
  if (remembers)
    if (const auto it = known_.find(e.get()); it != known_.end()) return it->second.second;
  Interval i = exact(e);
  if (!is_within(i, e.dtype())) i = of_type(e.dtype());
  if (remembers) known_.emplace(e.get(), std::pair{e, i});
  return i;
}

// Before wrapping to the type.
Interval Intervals::exact(const Expr& e) {
  if (auto i = as_int(e)) return {*i, *i};
  if (e.kind() == NodeKind::kVar) return of_var(e);
  if (const auto* b = e.as<Binary>()) return of_binary(*b);
  if (const auto* s = e.as<Select>()) return join(of(s->a), of(s->b));
  if (const auto* c = e.as<Cast>(); c && !is_float(c->value.dtype()) && e.dtype() != DType::kBool)
    return of(c->value);
  return {};
}
Interval Intervals::of_var(const Expr& e) {
  const Ranges::Range* r = ranges_.find(e);
  if (!r) return e.dtype() == DType::kInt64 ? Interval{0, std::nullopt} : Interval{};
  Interval low = of(r->min), extent = of(r->extent);
  Interval result{low.low, std::nullopt};
  if (low.high && extent.high)
    result.high = bounded(static_cast<__int128>(*low.high) + *extent.high - 1);
  return result;
}
// Sums of i64 are bounded term by term of the canonical form, in which equal terms have
// cancelled.
Interval Intervals::of_binary(const Binary& b) {
  if (b.type.dtype == DType::kBool) return {0, 1};
  switch (b.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      if (b.type.dtype != DType::kInt64)
        return add(of(b.a), b.op == BinaryOp::kAdd ? of(b.b) : scale(of(b.b), -1));
      Linear l = to_linear(std::make_shared<const Binary>(b));
      Interval sum{l.constant, l.constant};
      for (const LinearTerm& t : l.terms) {
        Interval p{1, 1};
        for (const Expr& f : t.factors) p = multiply(p, of(f));
        sum = add(sum, scale(p, t.coefficient));
      }
      return sum;
    }
    case BinaryOp::kMul: return multiply(of(b.a), of(b.b));
    case BinaryOp::kFloorDiv: {
      Interval a = of(b.a), d = of(b.b);
      auto c = as_int(b.b);
      if (!c) {
        const bool positive = a.low && *a.low >= 0 && d.low && *d.low >= 0;
        return positive ? Interval{0, a.high} : Interval{};
      }
      if (*c == 0) return {};
      if (*c < 0) std::swap(a.low, a.high);
      return {a.low ? std::optional(floor_div(*a.low, *c)) : std::nullopt,
              a.high ? std::optional(floor_div(*a.high, *c)) : std::nullopt};
    }
    case BinaryOp::kFloorMod: {
      Interval m = of(b.b), a = of(b.a);
      if (!m.low || *m.low < 0) return {};
      Interval r{0, m.high ? std::optional(*m.high - 1) : std::nullopt};
      if (a.low && *a.low >= 0 && a.high && (!r.high || *a.high < *r.high)) r.high = a.high;
      return r;
    }
    case BinaryOp::kMin: {
      Interval a = of(b.a), c = of(b.b), r;
      if (a.low && c.low) r.low = std::min(*a.low, *c.low);
      if (a.high || c.high)
        r.high = !a.high ? c.high : !c.high ? a.high : std::optional(std::min(*a.high, *c.high));
      return r;
    }
    case BinaryOp::kMax: {
      Interval a = of(b.a), c = of(b.b), r;
      if (a.high && c.high) r.high = std::max(*a.high, *c.high);
      if (a.low || c.low)
        r.low = !a.low ? c.low : !c.low ? a.low : std::optional(std::max(*a.low, *c.low));
      return r;
    }
    default: return {};
  }
}

Interval interval(const Expr& e, const Ranges& ranges) { return Intervals(ranges).of(e); }

}  // namespace tilewright::ir
