#include "passes/schedule/rules/join_terms.h"

#include "passes/analysis/accesses.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

bool join_two_axes(ScheduleState& s, const Block& b, size_t outer, size_t inner) {
  const std::string around = loop_of_axis(b, outer), inside = loop_of_axis(b, inner);
  return !around.empty() && !inside.empty() &&
         s.apply("collapse", {around, inside, inside + "_on"}) &&
         s.apply("join_axes", {b.name}, {static_cast<int64_t>(outer), static_cast<int64_t>(inner)});
}

void join_terms(ScheduleState& s, const std::string& name) {
  const SumOrder* order = s.sum_order(name);
  size_t joined = 1;
  for (bool more = true; more; ++joined) {
    more = false;
    if (order && joined >= order->joined) return;
    const Block b = *s.place(name).block;
    std::vector<size_t> axes;
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (b.axes[i].kind == AxisKind::kReduce) axes.push_back(i);
    if (axes.size() < 2) return;
    const size_t inner = axes.back(), outer = axes[axes.size() - 2];
    if (loop_of_axis(b, outer).empty() || loop_of_axis(b, inner).empty() ||
        is_one(b.axes[outer].extent) || is_one(b.axes[inner].extent) ||
        (!order && !runs_on(block_accesses(b), outer, inner, b.axes[inner].extent)))
      return;
    more = s.all_or_nothing([&] { return join_two_axes(s, b, outer, inner); });
    TW_CHECK(more || !order);
  }
}

}  // namespace tilewright::passes
