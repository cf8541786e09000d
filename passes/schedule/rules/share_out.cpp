#include "passes/schedule/rules/share_out.h"

#include <unordered_map>

#include "ir/loops/rewrite.h"

namespace tilewright::passes {

using namespace ir;

SerialWork work_of(const ScheduleState& s, const std::string& block) {
  return serial_work(s.machine(), *s.place(block).block,
                     [&](const Buffer& b) { return s.is_constant(b); });
}
SerialWork least_work_of(const ScheduleState& s, const std::string& block) {
  const Block& b = *s.place(block).block;
  double part = 1 / static_cast<double>(instances(b));
  for (const BlockAxis& a : b.axes) part *= static_cast<double>(extent_or(a.extent, 1));
  return work_of(s, block) * part;
}
bool forks(ScheduleState& s, const std::string& block, const SerialWork& work) {
  return forks(s, block, fork_cost(s.machine(), work));
}
bool forks(ScheduleState& s, const std::string& block, const ForkCost& cost) {
  return s.decide(block + ".fork", {0, 1}, cost.pays(), Bits::kKept, {cost.serial, cost.forked}) !=
         0;
}
bool forks(ScheduleState& s, const std::string& block) {
  return forks(s, block, work_of(s, block));
}

// Static partition: loops are collapsed from the outermost on until there are some 64 tasks, enough
// to balance uneven threads and few enough for each to be long.
void share_out(ScheduleState& s, const std::string& block, const std::vector<std::string>& loops) {
  constexpr int64_t kTasks = 64, kRun = 4;
  if (loops.empty()) return;
  std::unordered_map<std::string, Expr> extents;
  for (const For* f : s.place(block).loops) extents[f->var.name()] = f->extent;
  const int64_t enough =
      s.decide(block + ".tasks", {16, 32, kTasks, 128, 256}, kTasks, Bits::kKept);
  std::string parallel = loops[0];
  int64_t tasks = extent_or(extents[parallel], kUnknownExtent);
  for (size_t i = 1; i < loops.size() && tasks < enough; ++i) {
    const std::string name = block + ".p" + std::to_string(i), runs = name + "o";
    const auto known = as_int(extents[loops[i]]);
    std::string joined = loops[i];
    // Of a long loop, runs are shared out: within them addresses need no division.
    int64_t run = known ? *known * tasks / enough : 0;
    while (run >= kRun && *known % run != 0) --run;
    if (run >= kRun && s.apply("split", {joined, runs, name + "i"}, {run})) joined = runs;
    if (!s.apply("collapse", {parallel, joined, name})) break;
    parallel = name;
    tasks *= known.value_or(kUnknownExtent);
  }
  s.attempt("parallelize", {parallel});
}

size_t loops_of_steps(const ScheduleState& s, const std::string& block) {
  const BlockPlace p = s.place(block);
  size_t n = 0;
  for_each_stmt(s.kernel().body, [&](const Stmt& stmt) {
    const auto* around = stmt.as<Block>();
    if (!around || around == p.block || !find_block(around->body, block).ok()) return;
    for (const For* loop : p.loops)
      for (size_t a = 0; a < around->axes.size(); ++a)
        n += around->axes[a].kind == AxisKind::kOrdered && around->bindings[a].same_as(loop->var);
  });
  return n;
}

bool annotate(ScheduleState& s, const char* primitive, const std::string& loop) {
  return !s.has_loop(loop) || s.apply(primitive, {loop});
}

}  // namespace tilewright::passes
