// What may lie in which memory while it is used: one budget for each level, that rules and loop
// passes share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/machine.h"

namespace tilewright::passes {

// A row of accumulators, or of what a group of rows shares, stays in the first cache beside the
// operands that pass by.
inline int64_t bytes_beside_a_stream(const ir::MachineDescription& m) { return m.l1_bytes / 4; }
// A panel, or a copy of an operand, that is read again and again stays in the second cache, the
// other half of which is for what is read once.
inline int64_t bytes_of_a_panel(const ir::MachineDescription& m) { return m.l2_bytes / 2; }
// Sums that wait while the blocks of a reduction go by stay in the second cache beside what they are sums of.
inline int64_t bytes_of_sums(const ir::MachineDescription& m) { return m.l2_bytes / 16; }
// All sums of a product of long operands, which wait alone while blocks of both pass by once, and how many terms a
// block has: fewer do not pay for loading and storing the sums, and of more, pieces of rows leave the first cache.
inline int64_t bytes_of_all_sums(const ir::MachineDescription& m) { return 5 * m.l2_bytes / 8; }
constexpr int64_t kLeastTermsOfABlock = 32, kMostTermsOfABlock = 128;

// The largest cache that is faster than memory: the third one of virtual machines, far away and shared with others,
// may not be.
inline int64_t bytes_of_outer_cache(const ir::MachineDescription& m) {
  constexpr double kFaster = 1.5;
  return m.speed.l3_read < kFaster * m.speed.memory_read ? m.l2_bytes
                                                         : std::max(m.l2_bytes, m.l3_bytes);
}

}  // namespace tilewright::passes
