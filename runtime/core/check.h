// CHECK: an invariant of the program itself. Bad input from outside is a Result (result.h), never a
// CHECK. A failed one is thrown, so that the process that embeds us goes on: who calls for others
// turns it into an error (`catch_failures` in result.h, the C API); uncaught, it ends the process.
#pragma once

#include <stdexcept>
#include <string>

namespace tilewright {

// What a failed TW_CHECK throws: a bug of the compiler or the runtime, never bad input.
struct CheckFailure : std::logic_error {
  using std::logic_error::logic_error;
};

// `condition` is the source text of what did not hold.
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  throw CheckFailure(std::string("internal error: check failed: ") + condition + " (" + file + ":" +
                     std::to_string(line) + ")");
}

}  // namespace tilewright

#define TW_CHECK(condition)               \
  (static_cast<bool>(condition) ? void(0) \
                                : ::tilewright::check_failed(#condition, __FILE__, __LINE__))
