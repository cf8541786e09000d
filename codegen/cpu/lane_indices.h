// Vector indices whose lanes differ by known numbers, and those that have a part in common.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/nodes.h"

namespace tilewright::cpu {

// Lane i of a vector of integers is base + offsets[i].
struct KnownLanes {
  ir::Expr base;  // i64, a scalar
  std::vector<int64_t> offsets;
};
// Nothing when the lanes differ by what is known only as the kernel runs.
std::optional<KnownLanes> known_lanes(const ir::Expr& vector);

// index = uniform in all lanes + rest; either may be null.
struct SplitIndex {
  ir::Expr uniform;  // a scalar
  ir::Expr rest;     // a vector
};
SplitIndex split_index(const ir::Expr& index);

// How vectors that lie side by side in memory hold elements first + offsets[i] of the lanes that
// are on: two reads of `count` elements (a power of two; one read where both are the same) and the
// lane of the two for each result, -1 where it does not matter. Neither reads beyond these
// elements.
struct ShuffledRead {
  int64_t first = 0, second = 0;  // behind the base
  int count = 0;
  std::vector<int> lanes;
};
// Nothing when the elements lie too far apart for shuffles to pay.
std::optional<ShuffledRead> shuffled_read(const std::vector<int64_t>& offsets,
                                          const std::vector<bool>& on);

}  // namespace tilewright::cpu
