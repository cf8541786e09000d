// Candidates are called alone, in a process of their own (worker.cpp), on a real call's operands,
// before anything of this process runs them: one that writes where it must not, computes something
// else, never ends or wants more memory than there is costs a moment and is told.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "autotune/check/captured_calls.h"
#include "codegen/assemble_executable.h"

namespace tilewright::autotune {

struct CheckOptions {
  // What one candidate may take: time, beside some times what the usual form took, and memory, beside
  // some times its operands.
  double seconds = 5;
  int64_t most_bytes = int64_t{1} << 30;
  bool same_bits = false;  // as first_difference has it
  std::string worker;      // empty: the one beside the backend's library
};

// Of the kernels of `program` that are named, those that are refused, and why: "wrong: 3.5 instead of
// 2.5 at element 7 of out0", "ended by signal 11 (Segmentation fault)", "not compiled: ...". Each is
// called as in `captured`, at each size; those that are not there are not checked. Errors: kIo where a file cannot be
// written, no process can be started or it fails by itself; kLimit for the memory of all operands.
Result<std::map<std::string, std::string>> check_alone(const ir::Program& program,
                                                       const std::set<std::string>& kernels,
                                                       std::span<const CapturedCalls> captured,
                                                       const codegen::AssembleOptions& assemble,
                                                       const CheckOptions& options);

}  // namespace tilewright::autotune
