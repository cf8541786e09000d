// Events in the Chrome trace format, for Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/result.h"

namespace tilewright {

struct TraceTrack {
  int process = 1, thread = 1;
};
// One interval. Times are nanoseconds from the trace's origin. about: what it was for.
std::string trace_event(const std::string& name, const char* category, TraceTrack track,
                        int64_t start, int64_t duration, const std::string& about);
// Names a process, and its threads 1, 2 ...
std::string trace_names(int process, const std::string& name, const char* first,
                        const char* second);
// A whole trace, of events with commas between them.
std::string whole_trace(const std::string& events);
// Errors: kIo.
Status write_text(const std::string& path, const std::string& text);

}  // namespace tilewright
