#include "ir/formula/expand_operands.h"

#include <algorithm>

#include "ir/graph/broadcast.h"
#include "ir/graph/op.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

using Equal = std::function<bool(const Expr& a, const Expr& b)>;

// Dimensions that do not broadcast stand behind the others: of a product, those of its matrices.
size_t last_dims(const OpDef& op) { return op.fusion == FusionKind::kContraction ? 2 : 0; }

// Returns how many leading dimensions of the operand broadcast.
size_t broadcast_dims(const OpDef& op, const TensorType& type) {
  return type.dims.size() - std::min(type.dims.size(), last_dims(op));
}
// Returns the k-th broadcast extent, counted from the last one.
const Expr& extent_from_last(const OpDef& op, const TensorType& type, size_t k) {
  return type.dims[broadcast_dims(op, type) - 1 - k];
}

// The extent of the result, from the last one; nothing where operands do not broadcast.
std::optional<Expr> joined_extent(const NodeBuilder& n, const OpDef& op,
                                  const std::vector<ValueId>& operands, size_t k,
                                  const Equal& equal) {
  Expr joined = 1;
  for (const ValueId v : operands) {
    if (v == kNone || k >= broadcast_dims(op, n.type(v))) continue;
    const Expr& e = extent_from_last(op, n.type(v), k);
    const bool open = !is_one(joined) && !is_one(e) && !can_prove_equal(joined, e) &&
                      !(as_int(joined) && as_int(e));
    if (open && equal(joined, e)) {
      if (as_int(e)) joined = e;
      continue;
    }
    const auto next = broadcast_extent(joined, e);
    if (!next) return std::nullopt;
    joined = *next;
  }
  return joined;
}

}  // namespace

std::vector<ValueId> expand_operands(NodeBuilder& n, std::string_view name,
                                     std::vector<ValueId> operands, const Equal& equal) {
  const OpDef* op = find_op(name);
  if (!op || !op->broadcasts || operands.size() < 2) return operands;
  size_t rank = 0;
  for (const ValueId v : operands)
    if (v != kNone) rank = std::max(rank, broadcast_dims(*op, n.type(v)));
  std::vector<Expr> joined;
  for (size_t k = 0; k < rank; ++k) {
    const auto e = joined_extent(n, *op, operands, k, equal);
    if (!e) return operands;
    joined.push_back(*e);
  }
  for (ValueId& v : operands) {
    if (v == kNone) continue;
    std::vector<Expr> dims = n.type(v).dims;
    const size_t count = broadcast_dims(*op, n.type(v));
    bool repeats = false;
    for (size_t k = 0; k < count; ++k) {
      Expr& e = dims[count - 1 - k];
      if (!may_repeat(e, joined[k]) || equal(e, joined[k])) continue;
      repeats = true;
      e = joined[k];
    }
    if (repeats) v = n.op("expand", {v, n.dims(dims)});
  }
  return operands;
}

}  // namespace tilewright::ir
