// What each instruction of a program does to buffers, said once for lifetimes and the verifier.
#pragma once

#include <functional>
#include <vector>

#include "ir/program/program.h"

namespace tilewright::ir {

enum class BufferUse : uint8_t {
  kRead,       // every element may be read
  kWritten,    // elements are stored; what a kernel both reads and stores counts as this
  kUntouched,  // given to a kernel that neither reads nor stores it, as one over no elements
  kAllocated,  // gets storage of the size that it has now
};

// What a kernel does with each of its parameters.
std::vector<BufferUse> param_uses(const Kernel& kernel);
// The buffer whose storage a view is of, through views of views; -1 when an index is out of range
// or the views go round in a circle.
int32_t storage_root(const Program& program, int32_t buffer);
// The blocks that an instruction enters: branches, the body of a loop.
std::vector<int32_t> inner_blocks(const ProgramInstruction& instruction);

// Answers for all instructions of one program; what kernels do is looked up once.
class BufferUses {
 public:
  // Reads the kernels; the program may change afterwards but for these.
  explicit BufferUses(const Program& program);
  // f(buffer, use) for each buffer that the instruction itself names; those of the blocks that it
  // enters are apart. A loop reads what its body computes at the body's end.
  void of(const ProgramInstruction& instruction,
          const std::function<void(int32_t, BufferUse)>& f) const;

 private:
  std::vector<std::vector<BufferUse>> params_;  // by kernel
};

}  // namespace tilewright::ir
