// Does work pay the fork and join of threads that share it? What it takes one thread, against its
// share, the fork, and what caches hand over.
#pragma once

#include <functional>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace tilewright::passes {

// A rough cost of one thread's work, good to a factor of two or so: enough to tell work of some
// microseconds from work of a fraction of one.
struct SerialWork {
  double compute = 0;       // microseconds of the arithmetic, in whole vectors
  double memory = 0;        // microseconds of moving each element that is touched once
  double handed_bytes = 0;  // of operands that other kernels make: in another core's cache, maybe
  double microseconds() const { return compute > memory ? compute : memory; }
  SerialWork& operator+=(const SerialWork& more);
  SerialWork operator*(double part) const {
    return {compute * part, memory * part, handed_bytes * part};
  }
};
// Of all instances of a block; symbolic extents count as kUnknownExtent. is_constant: parameters
// whose elements never change stay in the cache of who reads them.
SerialWork serial_work(const ir::MachineDescription& machine, const ir::Block& block,
                       const std::function<bool(const ir::Buffer&)>& is_constant);

// Microseconds on one thread and shared out. Two threads count, however many there are: what pays
// for two pays for more.
struct ForkCost {
  double serial = 0, forked = 0;
  // A fork that gains next to nothing is not worth the other core's time.
  bool pays() const { return forked < 0.9 * serial; }
};
ForkCost fork_cost(const ir::MachineDescription& machine, const SerialWork& work);
// The like between work that is shared out: threads meet before and behind it anyway, and are all there.
ForkCost fork_cost_between(const ir::MachineDescription& machine, const SerialWork& work);

// Are there so many products side by side that each is a task, with all that it reads and what is made of its results?
inline bool are_tasks(const ir::MachineDescription& machine, int64_t places) {
  constexpr int64_t kOfAThread = 16;
  return places >= kOfAThread * (machine.threads > 1 ? machine.threads : 1);
}

}  // namespace tilewright::passes
