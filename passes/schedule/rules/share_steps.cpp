// What a step of an ordered axis does element by element, as a recurrent layer's gates, takes next to nothing
// block by block, and much of the step on one thread in all. Blocks over the same rows, one after the other,
// share these, and the rows are shared out: one phase for all of them.
#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The loop over the rows of a pointwise block in a step, right inside of the step's: the outermost axis,
// where more than one is left. Null: it has none.
const For* rows_of(const ScheduleState& s, const std::string& block) {
  const BlockPlace p = s.place(block);
  const size_t steps = loops_of_steps(s, block);
  if (kind_of(*p.block) != Applies::kPointwise || steps == 0 || p.loops.size() < steps + 2)
    return nullptr;
  const For* rows = p.loops[steps];
  return rows->loop_kind == LoopKind::kSerial ? rows : nullptr;
}

// Blocks from `first` on that stand under its rows.
std::vector<std::string> join(ScheduleState& s, const std::vector<std::string>& names,
                              size_t first) {
  const For* rows = rows_of(s, names[first]);
  const std::string loop = rows->var.name();
  const Expr extent = rows->extent;
  std::vector<std::string> joined{names[first]};
  for (size_t i = first + 1; i < names.size(); ++i) {
    const For* own = rows_of(s, names[i]);
    if (!own || !can_prove_equal(own->extent, extent) || !s.apply("fuse_loops", {names[i], loop}))
      break;
    joined.push_back(names[i]);
  }
  return joined;
}

// Is something else of the step shared out?
bool meets_others(const ScheduleState& s, const std::string& block) {
  const size_t steps = loops_of_steps(s, block);
  const For* step = s.place(block).loops[steps - 1];
  bool found = false;
  for_each_stmt(step->body, [&](const Stmt& stmt) {
    const auto* f = stmt.as<For>();
    found |= f && f->loop_kind == LoopKind::kParallel;
  });
  return found;
}

}  // namespace

void share_steps(ScheduleState& s) {
  constexpr int64_t kFewestRows = 8;  // fewer than those, and threads have unequal parts
  const std::vector<std::string> names = block_names(s);
  for (size_t i = 0; i < names.size(); ++i) {
    const For* rows = rows_of(s, names[i]);
    if (!rows || as_int(rows->extent).value_or(0) < kFewestRows) continue;
    const std::string loop = rows->var.name();
    std::vector<std::string> joined;
    s.all_or_nothing([&] {
      joined = join(s, names, i);
      return false;
    });
    SerialWork work;
    for (const std::string& name : joined) work += least_work_of(s, name);
    const ForkCost cost = meets_others(s, names[i]) ? fork_cost_between(s.machine(), work)
                                                    : fork_cost(s.machine(), work);
    if (forks(s, names[i], cost)) {
      join(s, names, i);
      s.attempt("parallelize", {loop});
    }
    i += joined.size() - 1;
  }
}

}  // namespace tilewright::passes
