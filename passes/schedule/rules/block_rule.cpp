#include <unordered_map>

#include "ir/loops/simplify.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

std::vector<size_t> BlockRule::with_outer(size_t inner, std::vector<bool>& used,
                                          const std::vector<BlockAccess>& accesses) const {
  std::vector<size_t> axes{inner};
  Expr joined = block_.axes[inner].extent;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < block_.axes.size() && !more; ++i) {
      if (used[i] || is_one(block_.axes[i].extent) || !runs_on(accesses, i, inner, joined))
        continue;
      joined = simplify(joined * block_.axes[i].extent);
      axes.push_back(i);
      used[i] = more = true;
    }
  }
  return axes;
}

std::string BlockRule::fuse(const std::vector<size_t>& axes, const char* label) {
  std::string inner = loop_of_axis(block_, axes[0]);
  for (size_t k = 1; k < axes.size(); ++k) {
    const std::string name = loop(label) + std::to_string(k);
    if (!s_.apply("fuse_axes", {loop_of_axis(block_, axes[k]), inner, name})) return "";
    inner = name;
  }
  return inner;
}

void BlockRule::share_out(const std::vector<std::string>& loops) {
  if (instances(block_) >= kParallelWork) passes::share_out(s_, name_, loops);
}

void share_out(ScheduleState& s, const std::string& block, const std::vector<std::string>& loops) {
  constexpr int64_t kTasks = 64, kRun = 4;
  std::unordered_map<std::string, Expr> extents;
  for (const For* f : s.place(block).loops) extents[f->var.name()] = f->extent;
  if (loops.empty()) return;
  std::string parallel = loops[0];
  int64_t tasks = extent_or(extents[parallel], kUnknownExtent);
  for (size_t i = 1; i < loops.size() && tasks < kTasks; ++i) {
    const std::string name = block + ".p" + std::to_string(i), runs = name + "o";
    const auto known = as_int(extents[loops[i]]);
    std::string joined = loops[i];
    // Of a long loop, runs are shared out: within them addresses need no division.
    int64_t run = known ? *known * tasks / kTasks : 0;
    while (run >= kRun && *known % run != 0) --run;
    if (run >= kRun && s.apply("split", {joined, runs, name + "i"}, {run})) joined = runs;
    if (!s.apply("fuse_axes", {parallel, joined, name})) break;
    parallel = name;
    tasks *= known.value_or(kUnknownExtent);
  }
  s.apply("parallelize", {parallel});
}

}  // namespace tilewright::passes
