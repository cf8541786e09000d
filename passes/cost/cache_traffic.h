// Bytes that flat loops bring from beyond each cache, from the footprints of their accesses: a loop
// whose data fits a cache brings each element once, and one that does not brings what each iteration
// brings, again and again (Ferrante et al., 1991; the "data movement" of tiling papers since).
#pragma once

#include <array>

#include "ir/loops/nodes.h"
#include "ir/machine.h"

namespace tilewright::passes {

// From beyond the first, second and third cache. Nothing comes from beyond one that holds all that
// the loops touch: what ran before left it there.
using CacheTraffic = std::array<double, 3>;

// Local buffers count as registers; extents that nothing bounds, as kUnknownExtent.
CacheTraffic cache_traffic(const ir::MachineDescription& machine, const ir::Stmt& flat_loops);

}  // namespace tilewright::passes
