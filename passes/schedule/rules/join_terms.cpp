#include "passes/schedule/rules/join_terms.h"

#include "passes/analysis/accesses.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

void join_terms(ScheduleState& s, const std::string& name) {
  const SumOrder* order = s.sum_order(name);
  size_t joined = 1;
  for (bool more = true; more; ++joined) {
    more = false;
    if (order && joined >= order->joined) return;
    const BlockPlace p = s.place(name);
    const Block& b = *p.block;
    std::vector<size_t> axes;
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (b.axes[i].kind == AxisKind::kReduce) axes.push_back(i);
    if (axes.size() < 2) return;
    const size_t inner = axes.back(), outer = axes[axes.size() - 2];
    const std::string around = loop_of_axis(b, outer), inside = loop_of_axis(b, inner);
    if (around.empty() || inside.empty() || is_one(b.axes[outer].extent) ||
        is_one(b.axes[inner].extent) ||
        (!order && !runs_on(block_accesses(b), outer, inner, b.axes[inner].extent)))
      return;
    more = s.all_or_nothing([&] {
      return s.apply("collapse", {around, inside, inside + "_on"}) &&
             s.apply("join_axes", {name},
                     {static_cast<int64_t>(outer), static_cast<int64_t>(inner)});
    });
    TW_CHECK(more || !order);
  }
}

}  // namespace tilewright::passes
