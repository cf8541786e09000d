// Results over the same elements share their loops, as an optimiser's moments and parameters do: what
// several of them read is loaded once, and what one stores for another is still in registers.
#include <algorithm>

#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The loop to move under: the innermost one that is no vector, where the loops of both match.
std::string shared_loop(const BlockPlace& a, const BlockPlace& b) {
  if (a.loops.empty() || a.loops.size() != b.loops.size() || a.loops[0] == b.loops[0]) return "";
  const For* shared = nullptr;
  for (size_t i = 0; i < a.loops.size(); ++i) {
    const For &x = *a.loops[i], &y = *b.loops[i];
    if (x.loop_kind != y.loop_kind || !can_prove_equal(x.extent, y.extent)) return "";
    if (x.loop_kind != LoopKind::kVectorized) shared = &x;
  }
  return shared ? shared->var.name() : "";
}

bool share_reads(const BlockPlace& a, const BlockPlace& b) {
  const Touched x = touched(a.stmt), y = touched(b.stmt);
  const auto is_result = [](const BufferNode* w) { return w->scope == Scope::kParam; };
  return std::all_of(x.writes.begin(), x.writes.end(), is_result) &&
         std::all_of(y.writes.begin(), y.writes.end(), is_result) &&
         std::any_of(y.reads.begin(), y.reads.end(), [&](const BufferNode* r) {
           const bool several = std::any_of(r->shape.begin(), r->shape.end(),
                                            [](const Expr& e) { return !is_one(e); });
           return several && (x.reads.count(r) || x.writes.count(r));
         });
}

}  // namespace

void share_nests(ScheduleState& s) {
  const std::vector<std::string> names = block_names(s);
  for (size_t i = 1; i < names.size(); ++i) {
    const BlockPlace before = s.place(names[i - 1]), p = s.place(names[i]);
    if (kind_of(*before.block) != Applies::kPointwise || kind_of(*p.block) != Applies::kPointwise)
      continue;
    const std::string loop = shared_loop(before, p);
    if (loop.empty() || !share_reads(before, p)) continue;
    if (s.would_go([&] {
          return s.apply("fuse_loops", {names[i], loop});
        }) &&
        s.decide_whether(names[i] + ".share_nest", true, Bits::kKept))
      s.attempt("fuse_loops", {names[i], loop});
  }
}

}  // namespace tilewright::passes
