#include "passes/cost/loop_cost.h"

#include <cstdio>

#include "ir/loops/rewrite.h"
#include "passes/analysis/extents.h"
#include "passes/cost/cache_traffic.h"
#include "passes/cost/core_cycles.h"
#include "passes/cost/machine_rates.h"

namespace tilewright::passes {

using namespace ir;

LoopCost loop_cost(const MachineDescription& machine, const Kernel& flat) {
  VarMap symbols;
  for (const Var& v : flat.scalars) symbols[v.get()] = Expr(kUnknownExtent);
  const Stmt body = substitute(flat.body, symbols);
  double forks = 0;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* f = s.as<For>()) forks += f->loop_kind == LoopKind::kParallel;
  });
  const bool shared = forks > 0 && machine.threads > 1;
  const Rates one = rates_of(machine, 1), all = rates_of(machine, shared ? machine.threads : 1);
  const CacheTraffic bytes = cache_traffic(machine, body);
  LoopCost cost;
  cost.compute = core_cycles(machine, body) / one.cycles;
  cost.l2 = bytes[0] / all.l2;
  cost.l3 = bytes[1] / all.l3;
  cost.memory = bytes[2] / all.memory;
  if (shared) cost.forks = (flat.team ? 1 : forks) * machine.speed.fork_join_us;
  return cost;
}

std::string explain(const LoopCost& c) {
  char text[200];
  std::snprintf(text, sizeof text,
                "expected: %.3g us: computing %.3g, from L2 %.3g, from L3 %.3g, from memory %.3g, "
                "threads %.3g",
                c.total(), c.compute, c.l2, c.l3, c.memory, c.forks);
  return text;
}

}  // namespace tilewright::passes
