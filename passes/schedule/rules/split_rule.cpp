#include <algorithm>

#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kRuns = 16, kFewestTerms = 16 * kParallelWork;

// Is each term read for one result alone?
bool reads_once(const Block& b, const std::vector<BlockAccess>& accesses) {
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == accesses.back().buffer) continue;
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (!is_one(b.axes[i].extent) && (!a.strides[i] || is_zero(a.strides[i]))) return false;
  }
  return true;
}
// Stretches of results that tasks of their own could make: those of one stretch lie side by side
// in what is read.
int64_t stretches(const ScheduleState& s, const Block& b,
                  const std::vector<BlockAccess>& accesses) {
  const int64_t stretch = s.machine().l1_bytes / 4 / 4;  // elements; as columns_rule cuts them
  int64_t n = 1;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kParallel) continue;
    bool side_by_side = true;
    for (const BlockAccess& a : accesses) side_by_side &= a.strides[i] && is_one(a.strides[i]);
    const int64_t extent = std::max<int64_t>(extent_or(b.axes[i].extent, kUnknownExtent), 1);
    n = std::min<int64_t>(n * (side_by_side ? (extent + stretch - 1) / stretch : extent), 1 << 30);
  }
  return n;
}

}  // namespace

bool split_rule(ScheduleState& s, const std::string& block) {
  const BlockPlace p = s.place(block);
  const Block& b = *p.block;
  const auto accesses = block_accesses(b);
  if (p.loops.size() != b.axes.size() || instances(b) < kFewestTerms || !reads_once(b, accesses) ||
      stretches(s, b, accesses) >= kRuns)
    return false;
  // Runs of the axis that moves furthest are whole stretches of memory.
  size_t axis = b.axes.size();
  int64_t furthest = 0;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kReduce || as_int(b.axes[i].extent).value_or(0) < kRuns * kRuns)
      continue;
    for (const BlockAccess& a : accesses) {
      const int64_t stride = a.stride(i).value_or(0);
      if (!a.write && stride > furthest) {
        furthest = stride;
        axis = i;
      }
    }
  }
  if (axis == b.axes.size()) return false;
  // Runs of one length, where some number of them divides the axis.
  const int64_t extent = *as_int(b.axes[axis].extent);
  int64_t runs = kRuns;
  for (int64_t n = 2 * kRuns; n >= kRuns / 2 && extent % runs != 0; --n)
    if (extent % n == 0) runs = n;
  if (!s.apply("split_reduction", {block, block + "_runs"}, {static_cast<int64_t>(axis), runs}))
    return false;
  s.note(block + ": few results of many terms: " + std::to_string(runs) +
         " runs of terms, one task each");
  return true;
}

}  // namespace tilewright::passes
