// The order in which an exact kernel (Kernel::exact) adds up floats: chosen from the axes of each
// operator and the width of vectors, before anything is inlined, so that neither layouts nor what
// an operator is fused with have a say. A sum over the last dimensions of one operand is that of
// partial sums along these, combined by halves, but for those over the pixels of each channel, which
// mostly lie channels last; any other takes one term after the other, the axes of windows outside
// the others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::passes {

struct SumOrder {
  std::vector<size_t> axes;  // that are summed over, the outermost first
  bool in_parts = false;     // partial sums in the lanes of vectors
  size_t joined = 0;         // axes of the partial sums: the last ones that are summed over
};

// By block; those whose order changes nothing (integers, extrema) are missing. Empty where the
// kernel is not exact.
std::map<std::string, SumOrder> sum_orders(const ir::Kernel& kernel);

}  // namespace tilewright::passes
