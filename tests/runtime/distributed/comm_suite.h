// What every engine must do: random collectives, which each rank compares with what all ranks gave.
#pragma once

#include <string>

#include "runtime/distributed/comm.h"

namespace tilewright::distributed {

// Makes `calls` random calls, the same ones on all ranks. Returns what was wrong first; empty: nothing.
std::string run_comm_suite(Comm& comm, uint64_t seed, int calls, int64_t most_elements);

}  // namespace tilewright::distributed
