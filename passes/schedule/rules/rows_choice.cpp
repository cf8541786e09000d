// Rows: which blocks take them.
#include "ir/loops/simplify.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rows_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Terms side by side in what is read: the innermost reduction, and those that run on from it.
int64_t run_of_terms(const Block& b) {
  auto accesses = block_accesses(b);
  accesses.pop_back();  // the store, where sums stand still
  std::vector<size_t> axes;
  for (size_t i = b.axes.size(); i-- > 0;)
    if (b.axes[i].kind == AxisKind::kReduce && !is_one(b.axes[i].extent)) axes.push_back(i);
  Expr run = axes.empty() ? Expr(1) : b.axes[axes[0]].extent;
  for (size_t k = 1; k < axes.size() && runs_on(accesses, axes[k], axes[0], run); ++k)
    run = simplify(run * b.axes[axes[k]].extent);
  return extent_or(run, kUnknownExtent);
}

// Runs shorter than a vector, as those of windows, leave the lanes to results side by side.
bool is_short(const ScheduleState& s, const Block& b) {
  return run_of_terms(b) < s.machine().lanes(4);
}

}  // namespace

bool rows_pay(const ScheduleState& s, const Work& work) {
  if (const SumOrder* sums = s.sum_order(work.block)) return sums->in_parts;
  const BlockPlace p = s.place(work.block);
  return reduces_along_rows(*p.block) && !is_short(s, *p.block) &&
         (!worth_a_tile(s, *p.block) || gathers_for_nothing(s, *p.block));
}

std::optional<Taken> take_rows(ScheduleState& s, const Work& work) {
  return schedule_rows(s, {work.block}) ? std::optional(Taken{}) : std::nullopt;
}

// Softmax, normalisations: all blocks over the same leading axes, at least one reduction along the
// rest.
std::optional<Taken> take_shared_rows(ScheduleState& s, const Work&) {
  const std::vector<std::string> names = block_names(s);
  if (names.size() < 2) return std::nullopt;
  bool reduction = false;
  for (const std::string& n : names) {
    const BlockPlace p = s.place(n);
    if (!is_simple(*p.block)) return std::nullopt;
    if (!is_reduction(*p.block)) continue;
    reduction = true;
    // One term after the other, an exact sum leaves the lanes to its results.
    const SumOrder* sums = s.sum_order(n);
    if (sums && !sums->in_parts) return std::nullopt;
    if (worth_a_tile(s, *p.block) || !reduces_along_rows(*p.block)) return std::nullopt;
    // All there is are results of windows, and what becomes of each.
    if (is_short(s, *p.block) && names.size() == 2 && !epilogue_of(s, n, names).empty())
      return std::nullopt;
  }
  return reduction && schedule_rows(s, names) ? std::optional(Taken{.all = true}) : std::nullopt;
}

}  // namespace tilewright::passes
