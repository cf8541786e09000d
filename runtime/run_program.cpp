// The interpreter of programs: one switch over instructions, each of which works on whole buffers,
// so that its own time does not count beside the kernels'. It knows sizes from the plan; only what
// the run itself defines (symbols, dynamic buffers) is evaluated here.
#include "runtime/run_program.h"

#include <algorithm>
#include <cstring>

namespace tilewright {

void ProgramRunner::begin(const Executable& executable, const VariantLayout& layout, Plan& plan,
                          uint8_t* arena) {
  end();  // an exception may have ended the run before
  variant_ = layout.variant;
  layout_ = &layout;
  plan_ = &plan;
  arena_ = arena;
  const size_t count = variant_->buffers.size();
  root_data_.assign(count, nullptr);
  pointers_.assign(count, nullptr);
  dynamic_.resize(count);
  scans_.resize(variant_->loops.size());
  symbols_.assign(plan.symbols.begin(), plan.symbols.end());
  dynamic_bytes_ = 0;
  for (size_t b = 0; b < count; ++b) {
    const BufferDesc& desc = variant_->buffers[b];
    if (layout.home[b] == Home::kConstant && desc.alias_of < 0)
      root_data_[b] = executable.constants
                          ? const_cast<uint8_t*>(executable.constants) + desc.constant_offset
                          : empty_storage();
    if (layout.home[b] == Home::kArena && desc.alias_of < 0)
      root_data_[b] = plan.root_bytes[b] > 0 ? arena + plan.offsets[b] : empty_storage();
  }
}

void ProgramRunner::end() {
  for (Storage& s : dynamic_) s = {};
  for (auto& loop : scans_) loop.clear();
}

Status ProgramRunner::run(ThreadPool& pool, Profiler* profiler, const CallObserver& observer,
                          Collectives* collectives) {
  collectives_ = collectives;
  for (size_t b = 0; b < pointers_.size(); ++b) {
    auto* root = static_cast<uint8_t*>(root_data_[layout_->root[b]]);
    pointers_[b] = root ? root + layout_->offset[b] : nullptr;
  }
  profiler_ = profiler;
  observer_ = observer ? &observer : nullptr;
  context_.pool = &pool;
  context_.abi.worker_count = pool.worker_count();
  context_.abi.not_finite = 0;
  context_.abi.parallel = [](TwKernelContext* c, int64_t count, TwParallelBody body,
                             void* closure) {
    reinterpret_cast<KernelContext*>(c)->pool->parallel(c, count, body, closure);
  };
  context_.abi.team = [](TwKernelContext* c, TwTeamBody body, void* closure) {
    reinterpret_cast<KernelContext*>(c)->pool->team(c, body, closure);
  };
  const std::vector<Instruction>& main = variant_->blocks[0];
  for (size_t i = 0; i < main.size(); ++i) {
    TW_RETURN_IF_ERROR(step(main[i], plan_->calls[0][i]));
    for (int32_t root : layout_->released_after[i]) {
      dynamic_bytes_ -= dynamic_[root].capacity;
      dynamic_[root] = {};
      share_pointer(root);
    }
    if (plan_->is_guarded())
      for (const auto& [offset, bytes] : plan_->poisoned_after[i]) poison(arena_ + offset, bytes);
  }
  return {};
}

Status ProgramRunner::run_block(int32_t block) {
  if (block < 0) return {};
  const std::vector<Instruction>& code = variant_->blocks[block];
  const int32_t unsized = plan_->unsized[block];
  if (plan_->is_guarded())
    for (const int32_t root : plan_->poisoned_before[block])
      poison(root_data_[root], plan_->root_bytes[root]);
  for (size_t i = 0; i < code.size(); ++i) {
    // What the block requires says more.
    if (unsized >= 0 && code[i].op != Op::kRequire) return unsized_error(*variant_, unsized);
    TW_RETURN_IF_ERROR(step(code[i], plan_->calls[block][i]));
  }
  return {};
}

Status ProgramRunner::step(const Instruction& instruction, CallPlan& call) {
  switch (instruction.op) {
    case Op::kCall: return run_call(instruction, call);
    case Op::kDefineSymbol: return define_symbol(instruction);
    case Op::kAllocate: return allocate(instruction.buffers[0]);
    case Op::kCopy: return copy(instruction.buffers[0], instruction.buffers[1]);
    case Op::kIf: return run_branch(instruction);
    case Op::kLoop: return run_loop(instruction);
    case Op::kFail: return invalid(instruction.message);
    case Op::kCheckIndices: return check_indices(instruction);
    case Op::kRequire: return check_extents(instruction, symbols_);
    case Op::kStart: return start(instruction);
  }
  return internal_error("unknown instruction");
}

Status ProgramRunner::start(const Instruction& instruction) {
  if (collectives_)
    collectives_->start(
        instruction.target,
        static_cast<std::byte*>(pointers_[instruction.buffers[0]]) + instruction.index,
        instruction.limit - instruction.index);
  return {};
}

// A kernel gets one pointer per buffer and one number per scalar, as kernel_abi.h says. Times are
// taken around it only when somebody profiles.
Status ProgramRunner::run_call(const Instruction& instruction, CallPlan& call) {
  const KernelDesc& kernel = variant_->kernels[instruction.target];
  if (call.at_run) TW_RETURN_IF_ERROR(evaluate_call(kernel, instruction, symbols_, call));
  TW_RETURN_IF_ERROR(set_workspace(call));
  arguments_.resize(instruction.buffers.size());
  for (size_t i = 0; i < arguments_.size(); ++i) {
    arguments_[i] = pointers_[instruction.buffers[i]];
    if (!arguments_[i])
      return internal_error("kernel '" + kernel.name + "' uses '" + name(instruction.buffers[i]) +
                            "' before it is allocated");
  }
  if (observer_) {
    TW_RETURN_IF_ERROR(observe(instruction, call, false));
    kernel.function(&context_.abi, arguments_.data(), call.scalars.data());
    return observe(instruction, call, true);
  }
  if (!profiler_ || instruction.profile < 0) {
    kernel.function(&context_.abi, arguments_.data(), call.scalars.data());
    return {};
  }
  const int64_t start = now_nanoseconds();
  kernel.function(&context_.abi, arguments_.data(), call.scalars.data());
  const int64_t stop = now_nanoseconds();
  const ProfileRow& row = variant_->profile[instruction.profile];
  profiler_->record(*variant_, instruction.profile, start, stop,
                    evaluate(row.flops, symbols_).value_or(0),
                    evaluate(row.bytes, symbols_).value_or(0));
  return {};
}

Status ProgramRunner::observe(const Instruction& instruction, const CallPlan& call, bool done) {
  std::vector<int64_t> bytes;
  for (const int32_t b : instruction.buffers) {
    TW_ASSIGN(const int64_t n, bytes_of(b));
    bytes.push_back(n);
  }
  (*observer_)({instruction, arguments_, bytes, call.scalars}, done);
  return {};
}

// Planned calls have their workspace in the arena; others share one that grows to the largest.
Status ProgramRunner::set_workspace(const CallPlan& call) {
  uint8_t* base = arena_ + call.workspace_offset;
  if (call.at_run) {
    const int64_t bytes = call.workspace_bytes(static_cast<int>(context_.abi.worker_count));
    if (bytes > run_workspace_.capacity) { TW_ASSIGN(run_workspace_, allocate_storage(bytes)); }
    base = run_workspace_.data;
  }
  if (plan_->is_guarded())
    poison(base, call.workspace_bytes(static_cast<int>(context_.abi.worker_count)));
  context_.abi.call_workspace = base;
  context_.abi.worker_workspace = base ? base + align_up(call.call_bytes) : nullptr;
  context_.abi.worker_workspace_stride = call.worker_stride;
  return {};
}

Status ProgramRunner::define_symbol(const Instruction& instruction) {
  TW_ASSIGN(const int64_t value, read_i64(instruction.buffers[0], instruction.index));
  const std::string& symbol = variant_->symbols[instruction.target];
  if (value < 0 && !instruction.message.empty())
    return invalid(instruction.message + known_symbols(instruction.target));
  if (value < 0 || value > instruction.limit)
    return limit_error("symbol '" + symbol + "' is " + std::to_string(value) + ", outside [0, " +
                       std::to_string(instruction.limit) + "]");
  symbols_[instruction.target] = value;
  return {};
}

// " (n = 3, m = 4)": those before `end` that have a value.
std::string ProgramRunner::known_symbols(int32_t end) const {
  std::string all;
  for (int32_t s = 0; s < end; ++s)
    if (symbols_[s] != kUnknownSize)
      all +=
          (all.empty() ? " (" : ", ") + variant_->symbols[s] + " = " + std::to_string(symbols_[s]);
  return all.empty() ? all : all + ")";
}

// A kernel has reduced the indices to the farthest of each dimension as index + extent (unsigned),
// so that both -extent - 1 and extent show as a number of 2 * extent or more: one comparison for
// both ends of the range that ONNX allows, [-extent, extent - 1]. Without a dimension, numbers are at least 0 and the
// kernel adds nothing.
Status ProgramRunner::check_indices(const Instruction& instruction) {
  TW_ASSIGN(const int64_t bytes, bytes_of(instruction.buffers[0]));
  for (size_t k = 0; bytes > 0 && k < instruction.scalars.size(); ++k) {
    TW_ASSIGN(const int64_t farthest, read_i64(instruction.buffers[1], static_cast<int64_t>(k)));
    const std::optional<int64_t> extent = evaluate(instruction.scalars[k], symbols_);
    if (!extent) return internal_error(instruction.message + ": an extent has no value");
    const uint64_t n = static_cast<uint64_t>(*extent), at = static_cast<uint64_t>(farthest);
    const bool no_indices = instruction.index < 0;
    if (at < (no_indices ? n : 2 * n)) continue;
    if (no_indices)
      return invalid(instruction.message + " is " + std::to_string(farthest) + ", expected 0 to " +
                     std::to_string(*extent - 1));
    return invalid(instruction.message + ": index " + std::to_string(static_cast<int64_t>(at - n)) +
                   " is out of range for dimension " +
                   std::to_string(instruction.index + static_cast<int64_t>(k)) + " of " +
                   std::to_string(*extent) + " elements");
  }
  return {};
}

void ProgramRunner::share_pointer(int32_t root) {
  uint8_t* const data = dynamic_[root].data;
  for (int32_t b : layout_->members[root])
    pointers_[b] = data ? data + layout_->offset[b] : nullptr;
}

// Makes room for `bytes`, keeping the first `keep`; counts what all dynamic buffers hold against
// the limit.
Status ProgramRunner::grow(Storage& storage, int64_t bytes, int64_t keep,
                           const std::string& buffer) {
  if (storage.data && bytes <= storage.capacity) return {};
  const int64_t others = dynamic_bytes_ - storage.capacity;
  if (bytes > dynamic_limit_ - others)
    return limit_error("buffer '" + buffer + "' needs " + std::to_string(bytes) + " bytes, " +
                       std::to_string(others) + " are in use and the limit is " +
                       std::to_string(dynamic_limit_));
  Result<Storage> larger = allocate_storage(bytes);
  if (!larger.ok()) return limit_error("buffer '" + buffer + "': " + larger.error().message);
  if (keep > 0) std::memcpy(larger->data, storage.data, keep);
  storage = std::move(*larger);
  dynamic_bytes_ = others + storage.capacity;
  return {};
}

Status ProgramRunner::allocate(int32_t buffer) {
  const int32_t root = layout_->root[buffer];
  if (layout_->home[root] != Home::kDynamic) return {};
  int64_t bytes = -1;
  for (int32_t b : layout_->members[root]) {
    const BufferDesc& desc = variant_->buffers[b];
    const std::optional<int64_t> logical = logical_bytes(desc, symbols_),
                                 storage = evaluate(desc.bytes, symbols_);
    if (logical && storage)
      bytes = std::max(bytes, layout_->offset[b] + std::max(*logical, *storage));
    else if (b == root)
      return internal_error("buffer '" + name(b) + "' is allocated before its size is known");
  }
  TW_RETURN_IF_ERROR(grow(dynamic_[root], bytes, 0, name(root)));
  if (plan_->is_guarded()) poison(dynamic_[root].data, dynamic_[root].capacity);
  share_pointer(root);
  return {};
}

// Bytes of the elements, for copies by the interpreter: never more than the storage behind them
// has.
Result<int64_t> ProgramRunner::bytes_of(int32_t buffer) const {
  if (!pointers_[buffer])
    return internal_error("buffer '" + name(buffer) + "' is used before it is allocated");
  if (plan_->bytes[buffer] != kUnknownSize) return plan_->bytes[buffer];
  const std::optional<int64_t> bytes = logical_bytes(variant_->buffers[buffer], symbols_);
  if (!bytes)
    return internal_error("buffer '" + name(buffer) + "' is used before its size is known");
  const int32_t root = layout_->root[buffer];
  const int64_t room =
      layout_->home[root] == Home::kDynamic ? dynamic_[root].capacity : plan_->root_bytes[root];
  const int64_t end = layout_->offset[buffer] + *bytes;
  if (end > room && end > plan_->bytes[root])
    return internal_error("buffer '" + name(buffer) + "' has outgrown its storage");
  return *bytes;
}

Result<int64_t> ProgramRunner::read_i64(int32_t buffer, int64_t index) const {
  TW_ASSIGN(const int64_t bytes, bytes_of(buffer));
  if (index >= bytes / 8)
    return internal_error("buffer '" + name(buffer) + "' has no element " + std::to_string(index));
  int64_t value = 0;
  std::memcpy(&value, static_cast<const uint8_t*>(pointers_[buffer]) + index * 8, sizeof value);
  return value;
}

Result<bool> ProgramRunner::read_bool(int32_t buffer) const {
  TW_ASSIGN(const int64_t bytes, bytes_of(buffer));
  if (bytes < 1) return internal_error("condition '" + name(buffer) + "' is empty");
  return *static_cast<const uint8_t*>(pointers_[buffer]) != 0;
}

Status ProgramRunner::copy(int32_t to, int32_t from) {
  TW_ASSIGN(const int64_t room, bytes_of(to));
  TW_ASSIGN(const int64_t bytes, bytes_of(from));
  if (room != bytes)
    return internal_error("copy of " + std::to_string(bytes) + " bytes of '" + name(from) +
                          "' to " + std::to_string(room) + " of '" + name(to) + "'");
  std::memmove(pointers_[to], pointers_[from], bytes);
  return {};
}

Status ProgramRunner::run_branch(const Instruction& instruction) {
  TW_ASSIGN(const bool condition, read_bool(instruction.buffers[0]));
  return run_block(condition ? instruction.block_a : instruction.block_b);
}

}  // namespace tilewright
