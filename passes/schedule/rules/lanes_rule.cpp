// Reductions that carry several values, such as the largest element and its place: each lane of a
// vector works on a result of its own.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool stores_alone(const Stmt& s) {
  if (const auto* q = s.as<Seq>())
    return std::all_of(q->stmts.begin(), q->stmts.end(), stores_alone);
  return s.as<Store>() != nullptr;
}
// The parallel axis along which all results, and what is read for them, lie side by side; the
// number of axes where there is none.
size_t axis_of_lanes(const Block& b) {
  const auto accesses = block_accesses(b);
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kParallel || is_one(b.axes[i].extent)) continue;
    const bool along = std::all_of(accesses.begin(), accesses.end(), [&](const BlockAccess& a) {
      const Expr& stride = a.strides[i];
      return stride && (is_one(stride) || (!a.write && is_zero(stride)));
    });
    if (along) return i;
  }
  return b.axes.size();
}

}  // namespace

bool lanes_rule(ScheduleState& s, const std::string& block) {
  const BlockPlace p = s.place(block);
  const Block b = *p.block;
  if (p.loops.size() != b.axes.size() || !b.init || !stores_alone(b.body)) return false;
  const size_t lane = axis_of_lanes(b);
  if (lane == b.axes.size()) return false;
  std::vector<std::string> outer, terms;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const std::string loop = loop_of_axis(b, i);
    if (loop.empty()) return false;
    if (i != lane) (b.axes[i].kind == AxisKind::kReduce ? terms : outer).push_back(loop);
  }
  int64_t lanes = s.machine().lanes(4);
  while (lanes > 4 && extent_or(b.axes[lane].extent, lanes) <= lanes / 2) lanes /= 2;
  const std::string parts = block + ".jo", vector = block + ".jv";
  std::vector<std::string> order = outer;
  order.push_back(parts);
  order.insert(order.end(), terms.begin(), terms.end());
  order.push_back(vector);
  if (!s.all_or_nothing([&] {
        return s.apply("split", {loop_of_axis(b, lane), parts, vector}, {lanes}) &&
               s.apply("reorder", order) && s.apply("vectorize", {vector});
      }))
    return false;
  s.note(block + ": a result in each lane of a vector, over all terms");
  if (instances(b) < kParallelWork) return true;
  outer.push_back(parts);
  std::string tasks = outer[0];
  for (size_t i = 1; i < outer.size(); ++i) {
    const std::string fused = block + ".p" + std::to_string(i);
    if (!s.apply("fuse_axes", {tasks, outer[i], fused})) break;
    tasks = fused;
  }
  s.apply("parallelize", {tasks});
  return true;
}

}  // namespace tilewright::passes
