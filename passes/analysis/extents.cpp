// Estimates, not facts: where an extent is symbolic a schedule still has to choose, by what is
// usual.
#include "passes/analysis/extents.h"

#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {
constexpr int64_t kMost = int64_t{1} << 40;  // products of extents end here, before they overflow
}  // namespace

int64_t extent_or(const Expr& e, int64_t fallback) { return as_int(e).value_or(fallback); }

int64_t extent_with(const Expr& e, int64_t symbol) {
  VarMap values;
  for (const Var& v : free_vars_in_order(e)) values[v.get()] = Expr(symbol);
  return std::max<int64_t>(as_int(simplify(substitute(e, values))).value_or(symbol), 1);
}

int64_t instances(const Block& block) {
  int64_t n = 1;
  for (const BlockAxis& a : block.axes)
    n = std::min<int64_t>(n * std::max<int64_t>(extent_or(a.extent, kUnknownExtent), 1), kMost);
  return n;
}

int64_t bytes_of(const BufferNode& b) {
  int64_t bytes = byte_size(b.dtype);
  for (const Expr& e : b.shape) bytes = std::min<int64_t>(bytes * extent_or(e, 0), kMost);
  return bytes;
}

}  // namespace tilewright::passes
