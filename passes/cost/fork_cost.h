// From what amount of work on a second thread is worth its fork and join.
#pragma once

#include <cstdint>

namespace tilewright::passes {

// Instances of a pointwise block below which a fork does not pay.
constexpr int64_t kParallelWork = 16384;
// Multiply-adds of a contraction: vectors take many at once.
constexpr int64_t kParallelProducts = 4 * kParallelWork;

}  // namespace tilewright::passes
