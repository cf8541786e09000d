// A schedule as data: primitive steps with parameters, replayed in order.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

// `names`: blocks, loops and buffers, as the primitive's row in the table says; `numbers`: factors.
struct Step {
  std::string primitive;
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  bool operator==(const Step&) const = default;
};
using Trace = std::vector<Step>;

inline constexpr size_t kAny = ~size_t{0};
// A row of the table of schedule primitives (apply_trace.cpp).
struct Primitive {
  // As traces spell it.
  std::string_view name;
  std::string_view parameters;  // documentation of names and numbers
  size_t names, numbers;        // how many of each; kAny: one or more
  // One step, checked; the kernel that is given stays as it is.
  Result<ir::Kernel> (*apply)(const ir::Kernel&, const Step&);
};
// The table of all primitives.
std::span<const Primitive> primitives();

// Errors: kInvalid with the step's number when a step does not fit or is not legal.
Result<ir::Kernel> apply_trace(ir::Kernel kernel, const Trace& trace);

// What every schedule must have done: no reduction that may be over nothing keeps its init inside
// of its loops, where it would never run. kInternal.
Status check_inits(const ir::Kernel& kernel);

// One line a step: `split(matmul.i0 a b; 14)`; parsed back by parse_trace, whose errors name the
// line.
std::string to_string(const Trace& trace);
Result<Trace> parse_trace(const std::string& text);

}  // namespace tilewright::passes
