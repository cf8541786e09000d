// Rules for gradients of pointwise operators that are no one-liners: they choose, or divide by what may
// be 0.
#pragma once

#include "ir/formula/gradient.h"

namespace tilewright::ir {

// x > number, element by element.
V greater(V x, double number);

void gradient_of_pow(GradientContext& c);
// beyond: the comparison, "less" or "greater", by which the first operand is taken.
void gradient_of_extreme(GradientContext& c, const char* beyond);
void gradient_of_relu(GradientContext& c);
void gradient_of_clip(GradientContext& c);
void gradient_of_where(GradientContext& c);

}  // namespace tilewright::ir
