// The order in which recurrent layers take the steps of sequences: what layers and their gradients share.
#pragma once

#include "ir/graph/compute.h"

namespace tilewright::ir {

// Of steps [s, b, ...], the last operand but optional being the lengths of sequences.
class StepOrder {
 public:
  // lens: the operand with the lengths i64 [b], if the node has it; else all are `steps` long.
  StepOrder(const ComputeContext& context, Expr steps, int lens)
      : c_(context),
        steps_(std::move(steps)),
        lens_(lens),
        reverse_(context.attr_int("reverse") != 0) {}

  // Does sequence b reach step t?
  Expr is_active(const Expr& t, const Expr& b) const {
    return c_.has(lens_) ? t < length(b) : bool_imm(true);
  }
  // Where step t of sequence b lies; a sequence in reverse starts at its own end, and what lies
  // behind it stays there.
  Expr position(const Expr& t, const Expr& b) const {
    if (!reverse_) return t;
    return c_.has(lens_) ? select(is_active(t, b), length(b) - 1 - t, t) : steps_ - 1 - t;
  }

 private:
  Expr length(const Expr& b) const {
    return clamp(cast(DType::kInt64, load(c_.in(lens_), {b})), 0, steps_);
  }
  const ComputeContext& c_;
  const Expr steps_;
  const int lens_;
  const bool reverse_;
};

// Pre-activations beyond attribute `clip` are limited to it.
inline Expr clipped(const NodeView& c, const Expr& x) {
  if (!c.has_attribute("clip")) return x;
  const double bound = c.attr_float("clip");
  return clamp(x, constant(-bound, x.dtype()), constant(bound, x.dtype()));
}

}  // namespace tilewright::ir
