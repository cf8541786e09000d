#include "ir/program/buffer_uses.h"

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

namespace {

using Visit = std::function<void(int32_t, BufferUse)>;

// One overload per instruction: one that is missing does not compile.
void uses(const DefineSymbolInstruction& x, const Visit& f) { f(x.buffer, BufferUse::kRead); }
void uses(const AllocateInstruction& x, const Visit& f) { f(x.buffer, BufferUse::kAllocated); }
void uses(const CopyInstruction& x, const Visit& f) {
  f(x.from, BufferUse::kRead);
  f(x.to, BufferUse::kWritten);
}
void uses(const FailInstruction&, const Visit&) {}
void uses(const CheckIndicesInstruction& x, const Visit& f) {
  f(x.indices, BufferUse::kRead);
  f(x.farthest, BufferUse::kRead);
}
void uses(const RequireInstruction&, const Visit&) {}
void uses(const StartInstruction& x, const Visit& f) { f(x.buffer, BufferUse::kRead); }
void uses(const IfInstruction& x, const Visit& f) { f(x.condition, BufferUse::kRead); }
void uses(const LoopInstruction& x, const Visit& f) {
  for (int32_t b : {x.trip_count, x.initial_condition, x.body_condition})
    if (b >= 0) f(b, BufferUse::kRead);
  if (x.iteration >= 0) f(x.iteration, BufferUse::kWritten);
  for (const auto& [state, computed] : x.carried) {
    f(computed, BufferUse::kRead);
    f(state, BufferUse::kWritten);
  }
  for (const auto& [element, result] : x.scans) {
    f(element, BufferUse::kRead);
    f(result, BufferUse::kWritten);
  }
}

}  // namespace

std::vector<BufferUse> param_uses(const Kernel& kernel) {
  struct Touched : Visitor {
    using Visitor::visit;
    void visit(const Buffer& b) override { buffers.insert(b.get()); }
    std::unordered_set<const BufferNode*> buffers;
  } touched;
  touched.visit(kernel.body);
  std::unordered_set<const BufferNode*> stored;
  for_each_stmt(kernel.body, [&](const Stmt& s) {
    if (const auto* st = s.as<Store>()) stored.insert(st->buffer.get());
    if (const auto* tile = s.as<DotTile>()) stored.insert(tile->sum.buffer.get());
  });
  std::vector<BufferUse> uses;
  for (const Buffer& b : kernel.params)
    uses.push_back(stored.count(b.get())            ? BufferUse::kWritten
                   : touched.buffers.count(b.get()) ? BufferUse::kRead
                                                    : BufferUse::kUntouched);
  return uses;
}

int32_t storage_root(const Program& program, int32_t buffer) {
  const auto count = static_cast<int32_t>(program.buffers.size());
  for (int32_t steps = 0; buffer >= 0 && buffer < count && steps <= count; ++steps) {
    const int32_t of = program.buffers[static_cast<size_t>(buffer)].alias_of;
    if (of < 0) return buffer;
    buffer = of;
  }
  return -1;
}

std::vector<int32_t> inner_blocks(const ProgramInstruction& instruction) {
  if (const auto* x = std::get_if<IfInstruction>(&instruction))
    return {x->then_block, x->else_block};
  if (const auto* x = std::get_if<LoopInstruction>(&instruction)) return {x->body};
  return {};
}

BufferUses::BufferUses(const Program& program) {
  for (const Kernel& k : program.kernels) params_.push_back(param_uses(k));
}
void BufferUses::of(const ProgramInstruction& instruction, const Visit& f) const {
  std::visit(
      [&](const auto& x) {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, CallInstruction>) {
          const std::vector<BufferUse>& params = params_.at(static_cast<size_t>(x.kernel));
          for (size_t p = 0; p < x.buffers.size(); ++p)
            f(x.buffers[p], p < params.size() ? params[p] : BufferUse::kUntouched);
        } else {
          uses(x, f);
        }
      },
      instruction);
}

}  // namespace tilewright::ir
