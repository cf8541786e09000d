// One real call of each kernel of a model: its operands and what it makes of them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

namespace tilewright::autotune {

struct CapturedOperand {
  DType dtype = DType::kFloat32;
  bool constant = false;  // its contents are the program's, in the layout that a schedule wants
  bool written = false;
  // Before and after the call; `after` only where it is written. What the kernel writes and never
  // reads holds ones in all bits before (NaN for floats), so that an element left out shows.
  std::vector<uint8_t> before, after;
};
struct CapturedCall {
  size_t block = 0, instruction = 0;  // in Program::blocks
  std::vector<CapturedOperand> operands;
  std::vector<int64_t> scalars;
};

// The first call of each kernel, by the kernel's name, in a run of `executable`, which was assembled
// from `program`. Kernels whose operands would take more than `most_bytes` together with those before
// them are left out, and those that the run does not reach.
Result<std::map<std::string, CapturedCall>> capture_calls(
    const ir::Program& program, const std::shared_ptr<Executable>& executable,
    std::span<const Tensor> inputs, std::shared_ptr<ThreadPool> pool,
    int64_t most_bytes = int64_t{1} << 30);

}  // namespace tilewright::autotune
