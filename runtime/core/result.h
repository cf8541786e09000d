// Result<T>: a value, or an Error that names what was found, what was expected and where.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/core/check.h"

namespace tilewright {

enum class ErrorKind {
  kInvalid,      // the input breaks a rule (exit status 1)
  kUnsupported,  // the input is legal, Tilewright cannot do it (exit status 3)
  kIo,           // a file cannot be read or written
  kLimit,        // a stated limit of memory, depth or size is exceeded
  kInternal,     // a pass produced something its verifier refuses: a bug here
};

// How many of an error's reasons go when more is known of the model's inputs: extents, and values
// of those that say shapes.
enum class Cure : uint8_t { kNone, kSome, kAll };
constexpr Cure join(Cure a, Cure b) { return a == b ? a : Cure::kSome; }

struct Error {
  // Tells programs what to do; people read `message`.
  ErrorKind kind = ErrorKind::kInvalid;
  std::string message;             // lower-case, no final period: what was found, what was expected
  std::string location;            // node, file or line; may be empty
  std::vector<std::string> notes;  // one per line below the message
  Cure by_inputs = Cure::kNone;    // kAll: compiling again with these inputs known may succeed

  // "location: message", then the notes, each on a line of its own.
  std::string to_string() const {
    std::string text = location.empty() ? message : location + ": " + message;
    for (const std::string& n : notes) text += "\n  " + n;
    return text;
  }
};

// Errors by kind. Messages are lower-case, without a final period, and say what was found and what
// was expected.
inline Error invalid(std::string message, std::string location = {}) {
  return {ErrorKind::kInvalid, std::move(message), std::move(location), {}};
}
inline Error unsupported(std::string message, std::string location = {}) {
  return {ErrorKind::kUnsupported, std::move(message), std::move(location), {}};
}
// Unsupported since something is not known when the model is compiled.
inline Error needs_value(std::string message, std::string location = {}) {
  return {ErrorKind::kUnsupported, std::move(message), std::move(location), {}, Cure::kAll};
}
inline Error io_error(std::string message, std::string location = {}) {
  return {ErrorKind::kIo, std::move(message), std::move(location), {}};
}
inline Error limit_error(std::string message, std::string location = {}) {
  return {ErrorKind::kLimit, std::move(message), std::move(location), {}};
}
inline Error internal_error(std::string message, std::string location = {}) {
  return {ErrorKind::kInternal, std::move(message), std::move(location), {}};
}

// A value or an error, and the duty to look: [[nodiscard]] on the class warns where a call's result
// is dropped (as absl::StatusOr or std::expected of C++23).
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return invalid("...");` both read plainly.
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  // Whether it holds a value. `explicit`, so that a Result<bool> is not taken for its value.
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // The value, or the error, of the result: asking for the one it does not have is a bug
  // (TW_CHECK).
  T& value() & {
    TW_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    TW_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    TW_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() {
    TW_CHECK(!ok());
    return std::get<1>(state_);
  }
  const Error& error() const {
    TW_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // As above; without an error it is a success that carries nothing.
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    TW_CHECK(error_);
    return *error_;
  }
  Error& error() {
    TW_CHECK(error_);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

// For functions that succeed or fail and give nothing else.
using Status = Result<void>;

// What f returns, or an error where a check fails or memory runs out on the way: whatever a model
// makes the compiler do, the process goes on.
template <typename F>
auto catch_failures(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const CheckFailure& e) {
    return internal_error(e.what());
  } catch (const std::bad_alloc&) { return limit_error("out of memory"); }
}

}  // namespace tilewright

#define TW_CONCAT_INNER(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_INNER(a, b)
// TW_RETURN_IF_ERROR(expr): returns the error of a Result from the calling function.
#define TW_RETURN_IF_ERROR(expr)                                                       \
  do {                                                                                 \
    if (auto tw_status = (expr); !tw_status.ok()) return std::move(tw_status.error()); \
  } while (0)
// TW_ASSIGN(auto x, expr): x is the value of a Result, or the calling function returns its error.
#define TW_ASSIGN(lhs, expr) TW_ASSIGN_IMPL(TW_CONCAT(tw_result_, __LINE__), lhs, expr)
#define TW_ASSIGN_IMPL(tmp, lhs, expr)          \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp.error()); \
  lhs = std::move(tmp).value()
