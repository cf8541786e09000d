// What connects ranks, measured: how far their clocks are apart, and what a ring of them takes.
#pragma once

#include "runtime/distributed/comm.h"

namespace tilewright::distributed {

// Nanoseconds to add to now_nanoseconds() of this rank, for the time that it is on rank 0's clock: off by at most half
// a message's way there and back.
Result<int64_t> clock_offset(Comm& comm);

// A step of a ring, in which each rank sends a chunk and receives one: seconds it takes whatever the size, seconds for
// each byte, and seconds of a CPU for each byte.
struct RingCost {
  double latency = 0, per_byte = 0, cpu_per_byte = 0;
};
// Of the slowest rank, by all_reduce() of few bytes and of many. There are at least two ranks.
Result<RingCost> measure_ring(Comm& comm);
// Seconds that all_reduce() of so many bytes takes on so many ranks.
double all_reduce_seconds(const RingCost& cost, int64_t bytes, int ranks);

}  // namespace tilewright::distributed
