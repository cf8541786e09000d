#include "runtime/trace_events.h"

#include <cstdio>

#include "runtime/core/printable.h"

namespace tilewright {
namespace {

// Strings as RFC 8259 quotes them; node names may hold anything.
std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    char code[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string name_event(const char* what, TraceTrack track, const std::string& name) {
  char place[64];
  std::snprintf(place, sizeof place, "\"ph\":\"M\",\"pid\":%d,\"tid\":%d", track.process,
                track.thread);
  return std::string("{\"name\":\"") + what + "\"," + place +
         ",\"args\":{\"name\":" + json_string(name) + "}}";
}

}  // namespace

std::string trace_event(const std::string& name, const char* category, TraceTrack track,
                        int64_t start, int64_t duration, const std::string& about) {
  char times[128];
  std::snprintf(times, sizeof times, "\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                track.process, track.thread, static_cast<double>(start) / 1e3,
                static_cast<double>(duration) / 1e3);
  return "{\"name\":" + json_string(name) + ",\"cat\":\"" + category + "\"," + times +
         ",\"args\":{\"nodes\":" + json_string(about) + "}}";
}

std::string trace_names(int process, const std::string& name, const char* first,
                        const char* second) {
  return name_event("process_name", {process, 1}, name) + ",\n" +
         name_event("thread_name", {process, 1}, first) + ",\n" +
         name_event("thread_name", {process, 2}, second);
}

std::string whole_trace(const std::string& events) {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events + "\n]}\n";
}

}  // namespace tilewright
