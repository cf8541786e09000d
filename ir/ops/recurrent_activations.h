// The activation functions that recurrent layers name.
#pragma once

#include "ir/graph/compute.h"

namespace tilewright::ir {

// Attributes "activations", "alpha" and "beta" must hold `count` known ones.
Status check_activations(const InferContext& c, size_t count);
// Activation n of the node applied to x.
Expr activation(const NodeView& c, size_t n, const Expr& x);
// Its derivative at x, where it is y.
Expr activation_slope(const NodeView& c, size_t n, const Expr& x, const Expr& y);

}  // namespace tilewright::ir
