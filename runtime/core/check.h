// CHECK: an invariant of the program itself. Bad input from outside is a Result (result.h), never a
// CHECK.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tilewright {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tilewright

#define TW_CHECK(condition)               \
  (static_cast<bool>(condition) ? void(0) \
                                : ::tilewright::check_failed(#condition, __FILE__, __LINE__))
