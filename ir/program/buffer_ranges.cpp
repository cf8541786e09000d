#include "ir/program/buffer_ranges.h"

namespace tilewright::ir {

bool meet(const BufferRange& a, const BufferRange& b) {
  return a.in == b.in && a.begin < b.end && b.begin < a.end;
}

BufferRange range_of(const Program& program, int32_t buffer) {
  const auto at = [&](int32_t b) -> const ProgramBuffer& {
    return program.buffers[static_cast<size_t>(b)];
  };
  const auto elements = as_int(at(buffer).elements);
  BufferRange r{.in = buffer};
  if (elements) r.end = *elements * byte_size(at(buffer).type.dtype);
  for (; at(r.in).alias_of >= 0; r.in = at(r.in).alias_of) {
    r.begin += at(r.in).alias_offset;
    if (elements) r.end += at(r.in).alias_offset;
  }
  return r;
}

bool touches(const Program& program, const BufferUses& uses, const ProgramInstruction& instruction,
             const BufferRange& memory, bool to_write) {
  bool found = false;
  uses.of(instruction, [&](int32_t b, BufferUse use) {
    found |= meet(range_of(program, b), memory) && (!to_write || use != BufferUse::kRead);
  });
  for (const int32_t inner : inner_blocks(instruction)) {
    if (inner < 0) continue;
    for (const ProgramInstruction& i : program.blocks[static_cast<size_t>(inner)])
      found |= touches(program, uses, i, memory, to_write);
  }
  return found;
}

}  // namespace tilewright::ir
