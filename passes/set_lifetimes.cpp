// First and last use of every buffer, from which the session plans its memory.
#include <algorithm>

#include "ir/program/buffer_uses.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Linear scan over the main block; what happens inside a branch or loop counts at its instruction.
class Lifetimes {
 public:
  explicit Lifetimes(Program& program)
      : p_(program), uses_(program), seen_(program.buffers.size()) {}
  void set() {
    const auto count = static_cast<int32_t>(p_.blocks[0].size());
    for (ProgramBuffer& b : p_.buffers) b.first_use = b.last_use = 0;
    for (int32_t i = 0; i < count; ++i) touch(p_.blocks[0][static_cast<size_t>(i)], i);
    for (int32_t b : p_.outputs) touch(b, count > 0 ? count - 1 : 0);
    for (ProgramBuffer& b : p_.buffers) {
      if (b.alias_of < 0) continue;
      const ProgramBuffer& r = p_.buffers[root(b.alias_of)];
      b.first_use = r.first_use;
      b.last_use = r.last_use;
    }
  }

 private:
  size_t root(int32_t b) const { return static_cast<size_t>(storage_root(p_, b)); }
  void touch(int32_t b, int32_t at) {
    ProgramBuffer& r = p_.buffers[root(b)];
    if (!seen_[root(b)]) r.first_use = at;
    seen_[root(b)] = true;
    r.last_use = std::max(r.last_use, at);
  }
  // A block inside lives at the instruction of the main block around it.
  void touch(const ProgramInstruction& x, int32_t at) {
    uses_.of(x, [&](int32_t b, BufferUse) { touch(b, at); });
    for (int32_t inner : inner_blocks(x))
      for (const ProgramInstruction& i : p_.blocks[static_cast<size_t>(inner)]) touch(i, at);
  }

  Program& p_;
  const BufferUses uses_;
  std::vector<bool> seen_;
};

}  // namespace

Program set_lifetimes(Program program) {
  Lifetimes(program).set();
  return program;
}

}  // namespace tilewright::passes
