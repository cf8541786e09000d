// What is started is the caller's from there on.
#include "ir/program/buffer_ranges.h"
#include "ir/program_verifier.h"

namespace tilewright::ir {

// A range lies in memory that the caller sees, and is known when the program is made.
bool ProgramVerifier::start_in_bounds(const StartInstruction& x) {
  const ProgramBuffer& b = at(x.buffer);
  const auto elements = as_int(b.elements);
  const bool seen = b.kind == StorageKind::kOutput || (b.kind == StorageKind::kInput && b.updated);
  if (!seen || b.alias_of >= 0) report(who(x.buffer) + " is started, but is no result of its own");
  if (elements && 0 <= x.begin && x.begin <= x.end && x.end <= *elements * byte_size(b.type.dtype))
    return true;
  report("bytes " + std::to_string(x.begin) + " to " + std::to_string(x.end) + " of " +
         who(x.buffer) + " are started, which it does not have");
  return false;
}

void ProgramVerifier::starts() {
  int64_t number = 0;
  for (size_t b = 0; b < p_.blocks.size(); ++b)
    for (size_t i = 0; i < p_.blocks[b].size(); ++i) {
      const auto* x = std::get_if<StartInstruction>(&p_.blocks[b][i]);
      if (!x) continue;
      stand_at(b, i);
      if (b > 0) report("a range is started outside of the main block");
      if (x->number != number++)
        report("start " + std::to_string(x->number) + " is number " + std::to_string(number - 1));
      if (start_in_bounds(*x) && b == 0) unused_behind(*x, i);
    }
  place_.clear();
}

void ProgramVerifier::unused_behind(const StartInstruction& x, size_t instruction) {
  const auto memory_of = [&](const StartInstruction& s) {
    const BufferRange r = range_of(p_, s.buffer);
    return BufferRange{r.in, r.begin + s.begin, r.begin + s.end};
  };
  const BufferRange memory = memory_of(x);
  for (size_t i = instruction + 1; i < p_.blocks[0].size(); ++i) {
    const auto* other = std::get_if<StartInstruction>(&p_.blocks[0][i]);
    if (other ? !meet(memory_of(*other), memory)
              : !touches(p_, uses_, p_.blocks[0][i], memory, false))
      continue;
    report("bytes " + std::to_string(x.begin) + " to " + std::to_string(x.end) + " of " +
           who(x.buffer) + " are used by instruction " + std::to_string(i) + " after their start");
    return;
  }
}

}  // namespace tilewright::ir
