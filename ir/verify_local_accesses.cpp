// Every access of a local buffer lies inside of it: on the stack nothing else stops a store. All
// lanes count, those that a mask or a condition turns off too, since code generation stores whole
// vectors and whole tiles to local buffers: their extents hold these (place_buffers). Bounds follow
// from the constant extents of the loops around, and are exact for sums and products.
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/loops_verifier.h"

namespace tilewright::ir {

namespace {

// The least and the largest element that an index takes, over all its lanes; null when not known.
struct Ends {
  Expr low, high;
};

Ends ends(const Expr& index, const Ranges& ranges) {
  if (auto i = as_int(index)) return {Expr(*i), Expr(*i)};
  if (const auto* r = index.as<Ramp>()) {
    const Ends base = ends(r->base, ranges);
    const Expr reach = r->stride * Expr(r->type.lanes / r->base.lanes() - 1);
    const Ends far{lower_bound(reach, ranges), upper_bound(reach, ranges)};
    if (!base.low || !base.high || !far.low || !far.high) return {};
    return {simplify(base.low + min(far.low, Expr(0))),
            simplify(base.high + max(far.high, Expr(0)))};
  }
  if (const auto* b = index.as<Broadcast>()) return ends(b->value, ranges);
  if (index.lanes() == 1) return {lower_bound(index, ranges), upper_bound(index, ranges)};
  const auto* sum = index.as<Binary>();
  if (!sum || sum->op != BinaryOp::kAdd) return {};
  const Ends a = ends(sum->a, ranges), b = ends(sum->b, ranges);
  if (!a.low || !a.high || !b.low || !b.high) return {};
  return {simplify(a.low + b.low), simplify(a.high + b.high)};
}

// Only of sums and products are the ends taken by some values of the loops: a minimum, a quotient or
// a place that is data may hang together with what stands beside it.
bool is_plain(const Expr& index) {
  bool plain = true;
  for_each_expr(index, [&](const Expr& e) {
    const auto* b = e.as<Binary>();
    plain &= !b || b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub || b->op == BinaryOp::kMul;
    plain &= !e.as<Select>() && !e.as<Load>() && !e.as<Unary>() && !e.as<Cast>();
  });
  return plain;
}

}  // namespace

void LoopsVerifier::inside(const Buffer& b, const Expr& index, const Expr& reach) {
  if (!flat_ || found_ > 0 || b->scope != Scope::kLocal || b->shape.size() != 1) return;
  const auto elements = as_int(b->shape[0]);
  if (!elements || !is_plain(index)) return;
  const Ends e = ends(index, ranges_);
  const Expr last = e.high ? simplify(e.high + reach, ranges_) : Expr();
  const auto low = e.low ? as_int(e.low) : std::nullopt;
  const auto high = last ? as_int(last) : std::nullopt;
  // Where an end is not known nothing can be said: only what is sure to lie outside is refused.
  const bool outside = (low && *low < 0) || (high && *high >= *elements);
  TW_REQUIRE(!outside, "index '" + text(index) + "' of the local buffer '" + names_.of(b) +
                           "' of " + std::to_string(*elements) + " elements runs from " +
                           (e.low ? text(e.low) : "somewhere") + " to " +
                           (last ? text(last) : "somewhere"));
}

void LoopsVerifier::inside(const TileOperand& x, int64_t rows, int64_t elements_a_row) {
  inside(x.buffer, x.index,
         upper_bound(x.stride * Expr(rows - 1), ranges_) + Expr(elements_a_row - 1));
}

}  // namespace tilewright::ir
