// Which memory instructions of a program use, byte by byte, whatever names views give it.
#pragma once

#include <limits>

#include "ir/program/buffer_uses.h"

namespace tilewright::ir {

// Bytes [begin, end) of a buffer that is no view.
struct BufferRange {
  int32_t in = -1;
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();
};
bool meet(const BufferRange& a, const BufferRange& b);

// Where a buffer's storage lies: that of a buffer of unknown size reaches to the end.
BufferRange range_of(const Program& program, int32_t buffer);

// Does the instruction, or one of the blocks that it enters, use the memory; or, with `to_write`, anything but read
// it? `uses`: of the program.
bool touches(const Program& program, const BufferUses& uses, const ProgramInstruction& instruction,
             const BufferRange& memory, bool to_write);

}  // namespace tilewright::ir
