// Memory: aligned storage, and the plan that lets buffers with disjoint lives share one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/memory.h"
#include "runtime/core/result.h"

namespace tilewright {

inline constexpr int64_t kAlignment = kHostAlignment;  // bytes
inline constexpr int64_t kLargestAllocation = int64_t{1}
                                              << 40;  // bytes; more is refused, never tried

constexpr int64_t align_up(int64_t bytes) {  // rounded up to whole lines; `bytes` is not negative
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A shared piece of memory, aligned to kAlignment and a whole number of cache lines long.
struct Storage {
  // Copies share the memory, which goes with the last of them; the elements are at `data`.
  std::shared_ptr<void> owner;
  uint8_t* data = nullptr;
  int64_t capacity = 0;  // bytes
};

// Uninitialised memory of at least `bytes`, never null even for 0. Errors: kLimit.
Result<Storage> allocate_storage(int64_t bytes);

// What a zero-size tensor without memory points at.
void* empty_storage();

// Memory wanted from instruction `first` to instruction `last`, both included.
struct LiveInterval {
  // Instructions are those of the main block; an interval is busy throughout each of them.
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};
struct ArenaPlan {
  std::vector<int64_t> offsets;  // one per interval, multiples of kAlignment
  int64_t bytes = 0;             // of the whole arena
  std::vector<int64_t> guards;   // offsets of pages that may not be touched
};

// Greedy by size: the largest interval first, each in the smallest gap that fits between those that
// live at the same time (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020, section 5.2). Errors: kLimit when the arena exceeds kLargestAllocation.
Result<ArenaPlan> plan_arena(std::span<const LiveInterval> intervals);

// For tests of kernels: which side of each interval lies at a page that may not be touched. Under a
// guard, memory without contents is poisoned.
enum class Guard : uint8_t { kNone, kBefore, kBehind };

// Each interval on pages of its own between two guards; its first or its last line at one of them.
// Errors: as plan_arena.
Result<ArenaPlan> plan_guarded_arena(std::span<const LiveInterval> intervals, Guard guard);

// As allocate_storage, but poisoned; reading or writing one of the pages at `guards` ends the process.
Result<Storage> allocate_guarded_storage(int64_t bytes, std::span<const int64_t> guards);

// Fills memory that holds nothing: a float that is read from it is NaN, an integer -1 or the largest one.
void poison(void* data, int64_t bytes);

}  // namespace tilewright
