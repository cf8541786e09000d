// What the passes took, as a table.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "frontends/cli/cli.h"
#include "passes/pipeline.h"

namespace tilewright::cli {

void print_pass_times() {
  std::vector<passes::PassTime> times = passes::pass_times();
  std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return a.seconds + a.verify_seconds > b.seconds + b.verify_seconds;
  });
  char line[128];
  std::snprintf(line, sizeof line, "%-24s %8s %10s %10s\n", "pass", "calls", "ms", "verify ms");
  std::cerr << line;
  for (const passes::PassTime& t : times) {
    std::snprintf(line, sizeof line, "%-24.24s %8lld %10.2f %10.2f\n", t.name.c_str(),
                  static_cast<long long>(t.calls), t.seconds * 1e3, t.verify_seconds * 1e3);
    std::cerr << line;
  }
}

}  // namespace tilewright::cli
