// Schedules replayed from their text by another process.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "passes/schedule/trace.h"

namespace tilewright {

// A kernel with blocks, a schedule, and the flat loops that come of both: as text.
struct ReplayCase {
  // What this process sees.
  std::string kernel, trace, flat;
};
ReplayCase replay_case(const ir::Kernel& kernel, const passes::Trace& trace);

// Another process of this program reads kernels and traces from a file, applies each trace, and
// comes to the same texts. Test programs that call it have the `main` of replay.cpp.
void expect_replayed(const std::vector<ReplayCase>& cases);

}  // namespace tilewright
