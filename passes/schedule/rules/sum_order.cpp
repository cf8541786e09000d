#include "passes/schedule/rules/sum_order.h"

#include <algorithm>
#include <optional>

#include "ir/loops/rewrite.h"
#include "passes/analysis/accesses.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool adds_floats(const Block& b) {
  const auto* st = b.body.as<Store>();
  const auto* update = st ? st->value.as<Binary>() : nullptr;
  return b.init && update && is_float(st->buffer->dtype) &&
         (update->op == BinaryOp::kAdd || update->op == BinaryOp::kMul);
}

// The axes, of more than one step, that an index goes by.
std::vector<size_t> axes_in(const Expr& index, const Block& b) {
  std::vector<size_t> found;
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (!is_one(b.axes[i].extent) && uses_var(index, b.axes[i].var)) found.push_back(i);
  return found;
}
// For each dimension of an operand that moves: the axis that alone moves it. Nothing where there
// are several, as in a window.
std::optional<std::vector<size_t>> axes_of(const BlockAccess& a, const Block& b) {
  std::vector<size_t> axes;
  for (const Expr& index : a.indices) {
    const std::vector<size_t> found = axes_in(index, b);
    if (found.size() > 1) return std::nullopt;
    axes.insert(axes.end(), found.begin(), found.end());
  }
  return axes;
}

SumOrder order_of(const Block& b) {
  std::vector<size_t> terms;
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (b.axes[i].kind == AxisKind::kReduce && !is_one(b.axes[i].extent)) terms.push_back(i);
  std::vector<BlockAccess> moving;  // with the terms
  for (BlockAccess& a : block_accesses(b)) {
    if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
    const bool moves = std::any_of(a.indices.begin(), a.indices.end(), [&](const Expr& index) {
      return std::any_of(terms.begin(), terms.end(),
                         [&](size_t t) { return uses_var(index, b.axes[t].var); });
    });
    if (moves) moving.push_back(std::move(a));
  }
  if (moving.size() != 1) return {};
  const auto axes = axes_of(moving[0], b);
  SumOrder order{false, 0};
  for (size_t k = 0; axes && k < std::min(axes->size(), terms.size()); ++k) {
    if ((*axes)[axes->size() - 1 - k] != terms[terms.size() - 1 - k]) break;
    order = {true, k + 1};
  }
  return order;
}

}  // namespace

std::map<std::string, SumOrder> sum_orders(const Kernel& kernel) {
  std::map<std::string, SumOrder> orders;
  if (!kernel.exact) return orders;
  for (const BlockPlace& p : all_blocks(kernel.body))
    if (adds_floats(*p.block)) orders[p.block->name] = order_of(*p.block);
  return orders;
}

}  // namespace tilewright::passes
