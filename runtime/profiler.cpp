#include "runtime/profiler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/core/write_file.h"
#include "runtime/trace_events.h"

namespace tilewright {

int64_t now_nanoseconds() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

int32_t Profiler::find_slot(const Variant& variant, int32_t row) {
  // Calls come in program order, so the slot sought mostly follows the one found last.
  const size_t n = keys_.size(),
               start = events_.empty() ? 0 : static_cast<size_t>(events_.back().slot) + 1;
  for (size_t k = 0; k < n; ++k) {
    const size_t slot = (start + k) % n;
    if (keys_[slot].variant == &variant && keys_[slot].row == row)
      return static_cast<int32_t>(slot);
  }
  const ProfileRow& source = variant.profile[row];
  keys_.push_back({&variant, row});
  rows_.push_back({source.nodes, source.kernel});
  return static_cast<int32_t>(n);
}

void Profiler::record(const Variant& variant, int32_t row, int64_t start, int64_t end,
                      int64_t flops, int64_t bytes) {
  const int32_t slot = find_slot(variant, row);
  Row& r = rows_[slot];
  r.fastest = r.calls == 0 ? end - start : std::min(r.fastest, end - start);
  ++r.calls;
  r.nanoseconds += end - start;
  r.flops += flops;
  r.bytes += bytes;
  if (events_.size() < kTraceLimit) events_.push_back({slot, start, end});
}

void Profiler::clear() {
  keys_.clear();
  rows_.clear();
  events_.clear();
}

std::vector<Profiler::Row> Profiler::rows() const {
  std::vector<Row> merged;
  for (const Row& r : rows_) {
    auto same = std::find_if(merged.begin(), merged.end(), [&](const Row& m) {
      return m.nodes == r.nodes && m.kernel == r.kernel;
    });
    if (same == merged.end()) {
      merged.push_back(r);
      continue;
    }
    same->calls += r.calls;
    same->nanoseconds += r.nanoseconds;
    same->fastest = std::min(same->fastest, r.fastest);
    same->flops += r.flops;
    same->bytes += r.bytes;
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Row& a, const Row& b) { return a.nanoseconds > b.nanoseconds; });
  return merged;
}

std::string Profiler::table() const {
  const std::vector<Row> all = rows();
  int64_t total = 0;
  for (const Row& r : all) total += r.nanoseconds;
  std::string text =
      " share     total ms    calls   fastest us   GFLOP/s      GB/s  kernel: nodes\n";
  for (const Row& r : all) {
    char line[128];
    const double ns = static_cast<double>(std::max<int64_t>(r.nanoseconds, 1));
    std::snprintf(line, sizeof line, "%5.1f%% %12.3f %8lld %12.3f %9.2f %9.2f  ",
                  100.0 * ns / static_cast<double>(std::max<int64_t>(total, 1)), ns / 1e6,
                  static_cast<long long>(r.calls), static_cast<double>(r.fastest) / 1e3,
                  static_cast<double>(r.flops) / ns, static_cast<double>(r.bytes) / ns);
    text += line + r.kernel + ": " + r.nodes + "\n";
  }
  return text;
}

std::string Profiler::trace_events(int process, int64_t origin) const {
  std::string text;
  for (const Event& e : events_)
    text += (text.empty() ? "" : ",\n") + trace_event(rows_[e.slot].kernel, "kernel", {process, 1},
                                                      e.start - origin, e.end - e.start,
                                                      rows_[e.slot].nodes);
  return text;
}

std::string Profiler::trace_json() const {
  return whole_trace(trace_events(1, events_.empty() ? 0 : events_.front().start));
}

Status Profiler::write_trace(const std::string& path) const {
  return write_file(path, trace_json());
}

}  // namespace tilewright
