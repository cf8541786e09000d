// The profile of a run against what this machine can do.
#include <algorithm>
#include <cstdio>

#include "codegen/measure/machine_cache.h"
#include "codegen/measure/measure_machine.h"
#include "frontends/cli/cli.h"

namespace tilewright::cli {

namespace {

measure::Peak find_peak(int threads) {
  const Result<ir::MachineSpeed> kept = measure::read_speed(measure::cache_file());
  return kept.ok() ? measure::peak_of(*kept, threads) : measure::measure_peak(threads);
}

std::string line(double percent, double microseconds, int64_t calls, double flops, double bytes,
                 const measure::Peak& peak, const std::string& what) {
  char text[160];
  const double seconds = std::max(microseconds, 1e-3) / 1e6;
  std::snprintf(text, sizeof text, "%6.2f%% %11.1f %6lld %11.3f %11.3f %7.1f%% %8.1f%%  ", percent,
                microseconds, static_cast<long long>(calls), flops / 1e6, bytes / 1e6,
                100 * flops / seconds / (peak.gflops * 1e9),
                100 * bytes / seconds / (peak.memory_read * 1e9));
  return text + what + "\n";
}

}  // namespace

std::string profile_table(const std::vector<Profiler::Row>& rows, int64_t run_nanoseconds,
                          int threads) {
  const measure::Peak peak = find_peak(threads);
  int64_t in_kernels = 0, flops = 0, bytes = 0, calls = 0;
  for (const Profiler::Row& r : rows) {
    in_kernels += r.nanoseconds;
    flops += r.flops;
    bytes += r.bytes;
    calls += r.calls;
  }
  const int64_t whole = std::max({run_nanoseconds, in_kernels, int64_t{1}});
  auto share = [&](int64_t ns) {
    return 100.0 * static_cast<double>(ns) / static_cast<double>(whole);
  };
  auto row = [&](int64_t ns, int64_t n, int64_t f, int64_t b, const std::string& what) {
    return line(share(ns), static_cast<double>(ns) / 1e3, n, static_cast<double>(f),
                static_cast<double>(b), peak, what);
  };
  char head[200];
  std::snprintf(head, sizeof head,
                "measured peak of %d thread%s: %.1f GFLOP/s (f32), %.1f GB/s read from memory "
                "(caches are faster)\n",
                threads, threads == 1 ? "" : "s", peak.gflops, peak.memory_read);
  std::string text = head + std::string(
                                "  share          us  calls       MFLOP          MB  of peak  of "
                                "bandw.  nodes [kernel]\n");
  for (const Profiler::Row& r : rows)
    text += row(r.nanoseconds, r.calls, r.flops, r.bytes, r.nodes + " [" + r.kernel + "]");
  text += row(whole - in_kernels, 0, 0, 0, "(between kernels)");
  return text + row(whole, calls, flops, bytes, "(the whole run)");
}

}  // namespace tilewright::cli
