// Greedy offset calculation by size (see plan_arena in arena.h). Buffers are placed from the
// largest to the smallest; a buffer looks only at those already placed whose lives meet its own,
// and takes the tightest gap between them (best fit):
//
//    bytes ^   +--------+
//          |   |   b    |   <- placed second, beside a
//          |   +--+-----+--+
//          |   |a |  | c   |   <- c reuses the bytes of a, which is dead by then
//          +---+--+--+-----+--> instructions
//
// O(n^2) for n buffers. Optimal packing is NP-hard (dynamic storage allocation); this heuristic is
// the one that TensorFlow Lite's planner uses.
#include "runtime/arena.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>

namespace tilewright {
namespace {

// Both ends are included: a buffer last read by an instruction may not be where that one writes.
bool lives_meet(const LiveInterval& a, const LiveInterval& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Placed {
  int64_t begin, end;
  size_t interval;
};

// `placed` is ordered by begin. Returns the start of the tightest gap, or of the space after the
// last neighbour.
int64_t best_fit(const std::vector<Placed>& placed, std::span<const LiveInterval> intervals,
                 size_t wanted) {
  const int64_t bytes = align_up(intervals[wanted].bytes);
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed& p : placed) {
    if (!lives_meet(intervals[p.interval], intervals[wanted])) continue;
    const int64_t gap = p.begin - end;
    if (gap >= bytes && gap < best_gap) {
      best_gap = gap;
      best = end;
    }
    end = std::max(end, p.end);
  }
  return best >= 0 ? best : end;
}

}  // namespace

Result<Storage> allocate_storage(int64_t bytes) {
  if (bytes < 0 || bytes > kLargestAllocation)
    return limit_error("cannot allocate " + std::to_string(bytes) + " bytes");
  const int64_t capacity = std::max(align_up(bytes), kAlignment);
  void* data = allocate_memory(static_cast<size_t>(capacity));
  if (!data)
    return limit_error("out of memory: cannot allocate " + std::to_string(bytes) + " bytes");
  return Storage{std::shared_ptr<void>(data, std::free), static_cast<uint8_t*>(data), capacity};
}

void* empty_storage() {
  alignas(kAlignment) static uint8_t line[kAlignment];
  return line;
}

Result<ArenaPlan> plan_arena(std::span<const LiveInterval> intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Stable, so that equal sizes keep the program's order and plans are reproducible.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return intervals[a].bytes > intervals[b].bytes; });
  ArenaPlan plan{std::vector<int64_t>(intervals.size(), 0), 0};
  std::vector<Placed> placed;
  for (size_t i : order) {
    if (intervals[i].bytes < 0 || intervals[i].bytes > kLargestAllocation)
      return limit_error("a buffer needs " + std::to_string(intervals[i].bytes) +
                         " bytes of memory");
    if (intervals[i].bytes == 0) continue;
    const int64_t begin = best_fit(placed, intervals, i);
    const Placed entry{begin, begin + align_up(intervals[i].bytes), i};
    plan.offsets[i] = begin;
    plan.bytes = std::max(plan.bytes, entry.end);
    if (plan.bytes > kLargestAllocation)
      return limit_error("the buffers need " + std::to_string(plan.bytes) + " bytes together");
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        entry);
  }
  return plan;
}

}  // namespace tilewright
