#include "passes/schedule/rules/sum_order.h"

#include <algorithm>
#include <set>

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

bool is_summed(const Block& b, size_t axis) { return b.axes[axis].kind == AxisKind::kReduce; }

// Windows outermost, as a convolution's kernel positions move several dimensions at once; partial
// sums only along trailing axes of a single operand, where they are contiguous whatever the layout.
SumOrder order_of(const Block& b) {
  SumOrder order;
  bool keeps_channels = false;
  std::set<size_t> windows;  // axes that move a dimension together with others
  std::vector<std::vector<size_t>>
      moving;  // axes of each operand's dimensions, one after the other
  for (const BlockAccess& a : block_accesses(b)) {
    if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
    std::vector<size_t> axes;
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const std::vector<size_t> found = axes_in(a.indices[d], b);
      keeps_channels |= d == 1 && found.size() == 1 && !is_summed(b, found[0]);
      if (found.size() > 1) windows.insert(found.begin(), found.end());
      axes.insert(axes.end(), found.begin(), found.end());
    }
    if (std::any_of(axes.begin(), axes.end(), [&](size_t i) { return is_summed(b, i); }))
      moving.push_back(std::move(axes));
  }
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (is_summed(b, i)) order.axes.push_back(i);
  std::stable_partition(order.axes.begin(), order.axes.end(),
                        [&](size_t i) { return windows.count(i) != 0; });
  if (moving.size() != 1 || !windows.empty()) return order;
  std::vector<size_t> terms = order.axes;
  std::erase_if(terms, [&](size_t i) { return is_one(b.axes[i].extent); });
  const std::vector<size_t>& axes = moving[0];
  while (order.joined < std::min(axes.size(), terms.size()) &&
         axes[axes.size() - 1 - order.joined] == terms[terms.size() - 1 - order.joined])
    ++order.joined;
  order.in_parts = order.joined > 0 && !(order.joined > 1 && keeps_channels);
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
