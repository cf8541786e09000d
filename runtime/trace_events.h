// Events in the Chrome trace format, for Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <string>

namespace tilewright {

struct TraceTrack {
  int process = 1, thread = 1;
};
// Returns a complete event ("ph": "X"). Times are nanoseconds from the trace's origin; `about` becomes an argument.
std::string trace_event(const std::string& name, const char* category, TraceTrack track,
                        int64_t start, int64_t duration, const std::string& about);
// Returns metadata events that label a process and its first two threads.
std::string trace_names(int process, const std::string& name, const char* first,
                        const char* second);
// Wraps comma-separated events in a trace document.
std::string whole_trace(const std::string& events);

}  // namespace tilewright
