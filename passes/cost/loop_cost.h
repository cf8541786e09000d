// What a kernel costs, read off its flat loops: an analytic cost for whatever rules write, with named
// terms. Good to a factor of two or so, and better at telling forms of one kernel apart.
#pragma once

#include <algorithm>
#include <string>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace tilewright::passes {

// Microseconds, each as if nothing else held the kernel up.
struct LoopCost {
  double compute = 0;                 // instructions and their latencies (core_cycles.h)
  double l2 = 0, l3 = 0, memory = 0;  // what comes from each level (cache_traffic.h)
  double forks = 0;                   // starting and joining threads
  // Cores compute while data comes.
  double total() const { return std::max({compute, l2, l3, memory}) + forks; }
};
// With machine.threads threads; symbols count as kUnknownExtent.
LoopCost loop_cost(const ir::MachineDescription& machine, const ir::Kernel& flat);

// "expected: 12.3 us: computing 12.3, from L2 4.5, from L3 0, from memory 0,
// threads 1".
std::string explain(const LoopCost& cost);

}  // namespace tilewright::passes
