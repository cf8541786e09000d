#include "ir/ops/run_extents.h"

namespace tilewright::ir {

Status infer_shape_at_run(InferContext& c, const std::function<Expr(int, const Expr&)>& dim) {
  auto rank = c.rank(1) == 1 ? as_int(c.dim(1, 0)) : std::nullopt;
  if (!rank)
    return c.needs_value("the length of the shape operand, " + to_string(c.type(1)) +
                         ", is not known at compile time");
  if (*rank > kRankLimit)
    return c.error("the shape operand is " + to_string(c.type(1)) + ", expected at most " +
                   std::to_string(kRankLimit) + " elements");
  std::vector<Expr> dims;
  for (int d = 0; d < static_cast<int>(*rank); ++d)
    dims.push_back(dim(d, c.data_dependent_symbol(d, "extent" + std::to_string(d))));
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}

void store_symbols(ComputeContext& c, const std::vector<Expr>& values) {
  std::vector<Stmt> stores;
  for (size_t k = 0; k < values.size(); ++k)
    stores.push_back(store(c.out(), {Expr(static_cast<int64_t>(k))}, values[k]));
  c.b.opaque(seq(std::move(stores)), "extents");
}

}  // namespace tilewright::ir
