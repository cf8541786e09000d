// What rules do about memory: stores past the caches, prefetches, several vectors at once.
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// Is so little of a buffer in the caches, once it was walked through, that its start is not?
bool exceeds_caches(const ScheduleState& s, const ir::BufferNode& b);
// The same of a cache that is faster than memory.
bool exceeds_outer_cache(const ScheduleState& s, const ir::BufferNode& b);
// Non-temporal stores where the caches could not hold the result anyway (decision "block.stream").
void store_past_caches(ScheduleState& s, const std::string& block);
// The same of what is written in an order of its own, for a later kernel: in a third cache that is no
// faster than memory it is as far away.
void store_copy_past_caches(ScheduleState& s, const std::string& block);
// The same of temporaries that tasks write for other tasks, in nests as they are in the end.
void store_temporaries_past_caches(ScheduleState& s);
// Has the last of the blocks that reads the largest input prefetch what lies `bytes` further on
// (decision "block.ahead"): passes over a row, and long chains of instructions, would else wait for
// memory now and then. `blocks`: in the order they run, over the same rows.
void prefetch_largest(ScheduleState& s, const std::vector<std::string>& blocks, int64_t bytes);
// Four rows of 1024 floats: far enough for memory to answer while rows are computed, and little
// enough to stay in the first cache beside them.
constexpr int64_t kRowsAhead = 16 << 10;
constexpr int64_t kStretchAhead = 4 << 10;  // a page: the processor's own prefetches end with one

// Does a value take a long chain of instructions, as exp does?
bool is_long_chain(const ir::Block& b);
// Vectors of a pointwise block to take at a time: several where each is a long chain of
// instructions, so that the chains overlap. `extent`: of the loop that is made vectors of.
int64_t decide_vectors_at_once(ScheduleState& s, const std::string& name, bool long_chain,
                               int64_t extent, int64_t lanes);

}  // namespace tilewright::passes
