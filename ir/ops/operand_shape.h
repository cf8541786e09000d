#pragma once

#include "ir/graph/op.h"

namespace tilewright::ir {

// Checks that optional operand i has the extents `dims`. Returns kInvalid, at the node, if known extents
// differ; the run checks unknown ones.
inline Status check_shape(const InferContext& c, int i, const std::vector<Expr>& dims) {
  if (!c.has(i)) return {};
  bool fits = c.rank(i) == static_cast<int>(dims.size());
  for (size_t d = 0; fits && d < dims.size(); ++d)
    fits = c.agree(c.dim(i, static_cast<int>(d)), dims[d]);
  if (fits) return {};
  return c.error("operand " + std::to_string(i) + " is " + to_string(c.type(i)) + ", expected " +
                 to_string(TensorType{c.type(i).dtype, dims}));
}

}  // namespace tilewright::ir
