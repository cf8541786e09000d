// Steps before and after the rules, which concern the kernel as a whole.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

// What writes the init of a reduction that may be over nothing would keep rules from taking the
// reduction for one.
void compose_inits(ScheduleState& s) {
  const std::vector<std::string> names = block_names(s);
  for (size_t i = 1; i < names.size(); ++i) {
    const BlockPlace p = s.place(names[i]), before = s.place(names[i - 1]);
    const bool in_a_loop = p.loops.size() > p.block->axes.size();  // that may go back to the other
    if (p.block->init && !in_a_loop && touched(p.stmt).writes == touched(before.stmt).writes)
      s.attempt("compose_init", {names[i], names[i - 1]});
  }
}

// Rules that leave the loops of a sum as they are keep its order then.
void order_sums(ScheduleState& s) {
  const Stmt before = s.kernel().body;  // steps replace it
  for (const BlockPlace& p : all_blocks(before)) {
    const SumOrder* sums = s.sum_order(p.block->name);
    if (!sums || std::is_sorted(sums->axes.begin(), sums->axes.end())) continue;
    std::vector<std::string> loops;
    for (size_t i : sums->axes) loops.push_back(loop_of_axis(*p.block, i));
    const bool done = s.apply("reorder", loops);
    TW_CHECK(done);
  }
}

void share_out_points(ScheduleState& s) {
  const Stmt* at = &s.kernel().body;
  while (const auto* a = at->as<Allocate>()) at = &a->body;
  std::vector<std::string> loops;
  for (const auto* f = at->as<For>(); f; f = at->as<For>()) {
    loops.push_back(f->var.name());
    at = &f->body;
  }
  const auto* outer = at->as<Block>();
  if (!outer || loops.empty() || all_blocks(outer->body).empty()) return;
  const std::string name = outer->name;  // steps replace the block
  s.attempt(
      "parallelize",
      {collapse_loops(s, loops, [&](size_t i) { return name + ".tasks" + std::to_string(i); })});
}

// So that no iteration asks whether it is the first.
Status take_out_inits(ScheduleState& s) {
  std::vector<std::pair<std::string, std::string>> inits;  // block, its outermost reduction loop
  for (const BlockPlace& p : all_blocks(s.kernel().body)) {
    if (!p.block->init) continue;
    for (const For* loop : p.loops) {
      bool feeds = false;
      for (size_t i = 0; i < p.block->axes.size(); ++i)
        feeds |=
            p.block->axes[i].kind == AxisKind::kReduce && uses_var(p.block->bindings[i], loop->var);
      if (!feeds) continue;
      inits.emplace_back(p.block->name, loop->var.name());
      break;
    }
  }
  for (const auto& [block, loop] : inits) s.attempt("decompose_reduction", {block, loop});
  return check_inits(s.kernel());
}

}  // namespace tilewright::passes
