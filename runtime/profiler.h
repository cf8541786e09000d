// Times of kernel calls: a table by the model's own nodes and a trace for Perfetto or
// chrome://tracing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace tilewright {

int64_t now_nanoseconds();  // monotonic

// Collects the calls of one session. Not synchronised: the session records under its own lock and
// hands out copies.
class Profiler {
 public:
  struct Row {
    // What the calls ran for and the function that did it (ProfileRow).
    std::string nodes, kernel;
    int64_t calls = 0, nanoseconds = 0, fastest = 0;  // of all calls together; of the fastest one
    int64_t flops = 0, bytes = 0;                     // of all calls together
  };

  // Records one call. `row` is an index in the variant's profile table. The trace keeps the first
  // kTraceLimit calls.
  void record(const Variant& variant, int32_t row, int64_t start, int64_t end, int64_t flops,
              int64_t bytes);
  void clear();

  std::vector<Row> rows()
      const;                  // the slowest first, calls of the same nodes and kernel in one row
  std::string table() const;  // rows as text: share, time, calls, GFLOP/s, GB/s, kernel, nodes
  std::string trace_json() const;  // trace_events.h
  // Its events alone, for a trace of several processes. origin: the time that is 0 there.
  std::string trace_events(int process, int64_t origin) const;
  // trace_json() to a file, replaced if there is one. Errors: kIo.
  Status write_trace(const std::string& path) const;

  // Events kept; the sums of `rows` go on beyond it.
  static constexpr size_t kTraceLimit = 1 << 20;

 private:
  struct Key {
    const Variant* variant;
    int32_t row;
  };
  struct Event {
    int32_t slot;
    int64_t start, end;
  };
  int32_t find_slot(const Variant& variant, int32_t row);

  std::vector<Key> keys_;
  std::vector<Row> rows_;  // one per key
  std::vector<Event> events_;
};

}  // namespace tilewright
