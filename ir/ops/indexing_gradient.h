// Rules for gradients of operators that write to, or choose, positions that are data.
#pragma once

#include "ir/formula/gradient.h"

namespace tilewright::ir {

// scatter_elements and scatter_nd, by data and updates. Where several updates meet in one element the
// last alone matters; of equal maxima or minima each gets the same part, as PyTorch's have it.
void gradient_of_scatter(GradientContext& c);
// By x, through the values.
void gradient_of_top_k(GradientContext& c);
void gradient_of_compress(GradientContext& c);
void gradient_of_max_unpool(GradientContext& c);

}  // namespace tilewright::ir
