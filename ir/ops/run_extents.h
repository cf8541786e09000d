// Extents of a result that only the run knows, from operands that hold them.
#pragma once

#include <functional>

#include "ir/graph/compute.h"

namespace tilewright::ir {

// One symbol for each element of operand 1, a shape; `dim` may choose what is known instead.
Status infer_shape_at_run(InferContext& c,
                          const std::function<Expr(int d, const Expr& symbol)>& dim);

// Writes the values of a node's symbols; one below 0 stops the run.
void store_symbols(ComputeContext& c, const std::vector<Expr>& values);

}  // namespace tilewright::ir
