// One real call of each kernel of a model: its operands and what it makes of them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autotune/check/shared_memory.h"
#include "ir/program/program.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

namespace tilewright::autotune {

struct CapturedOperand {
  DType dtype = DType::kFloat32;
  bool constant = false;  // its contents are the program's, in the layout that a schedule wants
  bool written = false;
  // What it holds before and after the call: where in CapturedCalls::contents. -1: nothing is kept, of
  // constants; of what is only read, or what nobody knows, afterwards. What is written and never read holds ones in
  // all bits before (NaN for floats), so that an element left out shows.
  int64_t bytes = 0, before = -1, after = -1;
};
struct CapturedCall {
  size_t block = 0, instruction = 0;  // in Program::blocks
  std::vector<CapturedOperand> operands;
  std::vector<int64_t> scalars;
  double seconds = 0;  // that it took
};
struct CapturedCalls {
  std::map<std::string, CapturedCall> by_kernel;  // by its name
  SharedMemory contents;
};

// The first call of each kernel in a run of `executable`, which was assembled
// from `program`. Kernels whose operands would take more than `most_bytes` together with those before
// them are left out, and those that the run does not reach. Errors: those of the run.
Result<CapturedCalls> capture_calls(const ir::Program& program,
                                    const std::shared_ptr<Executable>& executable,
                                    std::span<const Tensor> inputs,
                                    std::shared_ptr<ThreadPool> pool,
                                    int64_t most_bytes = int64_t{1} << 30);

}  // namespace tilewright::autotune
