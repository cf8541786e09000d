// Sizes to places: evaluates every size of a variant for one tuple of input symbols, and lets
// arena.h pack all that must exist during the run: temporaries, the kernels' workspaces (alive for
// one call) and the staging areas of loops. What depends on symbols that the run itself defines has
// no place here; it is allocated when its size is known (Home::kDynamic).
#include "runtime/session_plan.h"

#include <algorithm>

#include "runtime/core/relations.h"

namespace tilewright {
namespace {

// Inputs and outputs are the caller's memory wherever it fits, constants are read where the file
// was mapped: only the rest needs an arena.
Home home_of(const BufferDesc& root, bool is_output) {
  if (root.kind == BufferKind::kInput || root.kind == BufferKind::kRunKey) return Home::kInput;
  if (root.kind == BufferKind::kConstant) return Home::kConstant;
  if (root.dynamic) return Home::kDynamic;
  return is_output ? Home::kOutput : Home::kArena;
}

// Builds the arena: one interval per temporary, per call's workspace and per staging area of a
// loop.
class PlanBuilder {
 public:
  PlanBuilder(const VariantLayout& layout, int workers, Guard guard)
      : layout_(layout), v_(*layout.variant), workers_(workers), guard_(guard) {}

  Result<Plan> build(std::vector<int64_t> symbols) {
    plan_.symbols = std::move(symbols);
    for (const Instruction& i : v_.blocks[0])  // sizes rely on these
      if (i.op == Op::kRequire) TW_RETURN_IF_ERROR(check_extents(i, plan_.symbols));
    TW_RETURN_IF_ERROR(measure_buffers());
    add_buffers();
    plan_.calls.resize(v_.blocks.size());
    plan_.staging.assign(v_.loops.size(), 0);
    TW_RETURN_IF_ERROR(add_block(0, -1));
    TW_ASSIGN(ArenaPlan arena, guard_ == Guard::kNone ? plan_arena(intervals_)
                                                      : plan_guarded_arena(intervals_, guard_));
    for (size_t i = 0; i < intervals_.size(); ++i) *targets_[i] = arena.offsets[i];
    plan_.arena_bytes = arena.bytes;
    plan_.guards = std::move(arena.guards);
    if (guard_ != Guard::kNone) add_poison(arena.offsets);
    return std::move(plan_);
  }

 private:
  Status measure_buffers() {
    plan_.bytes.assign(v_.buffers.size(), kUnknownSize);
    plan_.root_bytes.assign(v_.buffers.size(), 0);
    plan_.offsets.assign(v_.buffers.size(), 0);
    plan_.unsized.assign(v_.blocks.size(), -1);
    for (size_t b = 0; b < v_.buffers.size(); ++b) {
      const BufferDesc& desc = v_.buffers[b];
      const std::optional<int64_t> logical = logical_bytes(desc, plan_.symbols);
      const std::optional<int64_t> storage = evaluate(desc.bytes, plan_.symbols);
      if (logical) plan_.bytes[b] = *logical;
      if (!logical || !storage) {
        const bool fixed = desc.alias_of < 0 && !desc.dynamic;
        if (fixed) TW_RETURN_IF_ERROR(mark_unsized(static_cast<int32_t>(b)));
        continue;
      }
      int64_t& root = plan_.root_bytes[layout_.root[b]];
      root = std::max(root, layout_.offset[b] + std::max(*logical, *storage));
    }
    return check_borrowed();
  }

  // An error of the run, unless only branches that it may not take use the buffer.
  Status mark_unsized(int32_t b) {
    const std::vector<int32_t>& users = layout_.users[b];
    if (users.empty() || layout_.home[b] != Home::kArena ||
        std::find(users.begin(), users.end(), 0) != users.end())
      return unsized_error(v_, b);
    for (int32_t block : users) plan_.unsized[block] = b;
    return {};
  }

  // A view of an input or a constant must not end behind what it views.
  Status check_borrowed() const {
    for (size_t b = 0; b < v_.buffers.size(); ++b) {
      const int32_t root = layout_.root[b];
      const bool borrowed = layout_.home[b] == Home::kInput || layout_.home[b] == Home::kConstant;
      if (borrowed && plan_.bytes[b] != kUnknownSize &&
          layout_.offset[b] + plan_.bytes[b] > plan_.bytes[root])
        return internal_error("buffer '" + v_.buffers[b].name + "' ends behind '" +
                              v_.buffers[root].name + "'");
    }
    return {};
  }

  void add_interval(int64_t bytes, int32_t first, int32_t last, int64_t* target) {
    intervals_.push_back({bytes, first, last});
    targets_.push_back(target);
  }

  void add_buffers() {
    std::vector<LiveInterval> life(v_.buffers.size(), LiveInterval{0, INT32_MAX, INT32_MIN});
    for (size_t b = 0; b < v_.buffers.size(); ++b) {
      LiveInterval& l = life[layout_.root[b]];
      l.first = std::min(l.first, v_.buffers[b].first_use);
      l.last = std::max(l.last, v_.buffers[b].last_use);
    }
    for (size_t b = 0; b < v_.buffers.size(); ++b)
      if (layout_.root[b] == static_cast<int32_t>(b) && layout_.home[b] == Home::kArena)
        add_interval(plan_.root_bytes[b], life[b].first, life[b].last, &plan_.offsets[b]);
  }

  Status add_block(int32_t block, int32_t top) {
    plan_.calls[block].resize(v_.blocks[block].size());
    if (plan_.unsized[block] >= 0) return {};
    for (size_t i = 0; i < v_.blocks[block].size(); ++i) {
      const Instruction& instruction = v_.blocks[block][i];
      const int32_t here = top >= 0 ? top : static_cast<int32_t>(i);
      if (instruction.op == Op::kCall)
        TW_RETURN_IF_ERROR(add_call(instruction, here, plan_.calls[block][i]));
      if (instruction.op == Op::kLoop) TW_RETURN_IF_ERROR(add_loop(instruction.target, here));
      const auto [a, b] = blocks_of(v_, instruction);
      if (a >= 0) TW_RETURN_IF_ERROR(add_block(a, here));
      if (b >= 0) TW_RETURN_IF_ERROR(add_block(b, here));
    }
    return {};
  }

  // Alive for its own instruction only, so two calls' workspaces share bytes.
  Status add_call(const Instruction& instruction, int32_t top, CallPlan& call) {
    call.at_run =
        std::any_of(instruction.scalars.begin(), instruction.scalars.end(),
                    [&](const SizeExpr& s) { return depends_on_run(s, layout_.from_input); });
    if (call.at_run) return {};
    TW_RETURN_IF_ERROR(
        evaluate_call(v_.kernels[instruction.target], instruction, plan_.symbols, call));
    const int64_t bytes = call.workspace_bytes(workers_);
    if (bytes > 0) add_interval(bytes, top, top, &call.workspace_offset);
    return {};
  }

  Status add_loop(int32_t index, int32_t top) {
    const LoopDesc& loop = v_.loops[index];
    int64_t bytes = 0;
    for (const auto& [state, computed] : loop.carried) {
      if (plan_.bytes[state] == kUnknownSize)
        return unsupported("loop: the carried value '" + v_.buffers[state].name +
                           "' has a shape that the run defines");
      bytes += align_up(plan_.bytes[state]);
    }
    if (needs_staging(v_, loop)) add_interval(bytes, top, top, &plan_.staging[index]);
    return {};
  }

  void add_poison(const std::vector<int64_t>& offsets) {
    const size_t count = v_.blocks[0].size();
    plan_.poisoned_after.resize(count + 1);
    for (size_t i = 0; i < intervals_.size(); ++i)
      if (intervals_[i].last >= 0)
        plan_.poisoned_after[std::min(count, static_cast<size_t>(intervals_[i].last))].emplace_back(
            offsets[i], intervals_[i].bytes);
    plan_.poisoned_before.resize(v_.blocks.size());
    for (size_t b = 0; b < v_.buffers.size(); ++b) {
      const std::vector<int32_t>& users = layout_.users[b];
      if (layout_.root[b] == static_cast<int32_t>(b) && layout_.home[b] == Home::kArena &&
          users.size() == 1 && users[0] > 0)
        plan_.poisoned_before[users[0]].push_back(static_cast<int32_t>(b));
    }
  }

  const VariantLayout& layout_;
  const Variant& v_;
  const int workers_;
  const Guard guard_;
  Plan plan_;
  std::vector<LiveInterval> intervals_;
  std::vector<int64_t*> targets_;  // stable: the vectors they point into have their final size
};

}  // namespace

VariantLayout make_layout(const Variant& v) {
  VariantLayout l;
  l.variant = &v;
  l.from_input = input_symbols(v);
  l.fixed = true;
  for (int32_t b : v.inputs)
    for (const SizeExpr& d : v.buffers[b].dims) l.fixed &= is_constant(d);
  const auto count = static_cast<int32_t>(v.buffers.size());
  for (int32_t b = 0; b < count; ++b) l.root.push_back(storage_root(v, b));
  for (int32_t b = 0; b < count; ++b) l.offset.push_back(storage_offset(v, b));
  l.output_of_root.assign(count, -1);
  for (size_t i = v.outputs.size(); i-- > 0;)
    l.output_of_root[l.root[v.outputs[i]]] = static_cast<int32_t>(i);
  for (int32_t b = 0; b < count; ++b)
    l.home.push_back(home_of(v.buffers[l.root[b]], l.output_of_root[l.root[b]] >= 0));
  for (int32_t b = 0; b < count; ++b)
    if (v.buffers[b].kind == BufferKind::kRunKey) l.run_keys.push_back(b);
  l.users.resize(count);
  for (size_t k = 0; k < v.blocks.size(); ++k)
    for (const Instruction& i : v.blocks[k])
      for_each_buffer(v, i, [&](int32_t b) {
        for (std::vector<int32_t>* users : {&l.users[b], &l.users[l.root[b]]})
          if (users->empty() || users->back() != static_cast<int32_t>(k))
            users->push_back(static_cast<int32_t>(k));
      });
  l.members.resize(count);
  for (int32_t b = 0; b < count; ++b)
    if (l.home[b] == Home::kDynamic) l.members[l.root[b]].push_back(b);

  l.released_after.resize(v.blocks[0].size());
  std::vector<int32_t> last(count, -1);
  for (int32_t b = 0; b < count; ++b)
    last[l.root[b]] = std::max(last[l.root[b]], v.buffers[b].last_use);
  for (int32_t b = 0; b < count; ++b) {
    const bool dies = l.root[b] == b && l.home[b] == Home::kDynamic && l.output_of_root[b] < 0;
    if (dies && last[b] >= 0 && last[b] < static_cast<int32_t>(l.released_after.size()))
      l.released_after[last[b]].push_back(b);
  }
  return l;
}

Result<Plan> make_plan(const VariantLayout& layout, std::vector<int64_t> symbols, int workers,
                       Guard guard) {
  return PlanBuilder(layout, workers, guard).build(std::move(symbols));
}

Status unsized_error(const Variant& variant, int32_t buffer) {
  return limit_error("buffer '" + variant.buffers[buffer].name +
                     "' has a negative or too large extent");
}

Status evaluate_call(const KernelDesc& kernel, const Instruction& instruction,
                     std::span<const int64_t> symbols, CallPlan& call) {
  call.scalars.resize(instruction.scalars.size());
  for (size_t i = 0; i < call.scalars.size(); ++i) {
    const std::optional<int64_t> value = evaluate(instruction.scalars[i], symbols);
    if (!value)
      return internal_error("kernel '" + kernel.name + "': scalar " + std::to_string(i) +
                            " has no value");
    call.scalars[i] = *value;
  }
  const std::optional<int64_t> shared = evaluate(kernel.call_workspace, call.scalars);
  const std::optional<int64_t> each = evaluate(kernel.worker_workspace, call.scalars);
  constexpr int64_t kMost = kLargestAllocation / 2048;  // so that no product below overflows
  if (!shared || !each || *shared < 0 || *each < 0 || *shared > kLargestAllocation / 2 ||
      *each > kMost)
    return internal_error("kernel '" + kernel.name + "' wants a workspace of no legal size");
  call.call_bytes = *shared;
  call.worker_stride = align_up(*each);
  return {};
}

namespace {

// What the two extents of a kRequire instruction are, and whether they are as it says; true while one has
// no value yet.
struct Required {
  std::optional<int64_t> a, b;
  bool holds = true;
};
Required required(const Instruction& i, std::span<const int64_t> symbols) {
  Required r{evaluate(i.scalars[0], symbols), evaluate(i.scalars[1], symbols)};
  if (!r.a || !r.b) return r;
  const bool at_most = i.index == 1, broadcast = i.index == 2;
  r.holds = *r.a == *r.b || (at_most && *r.a < *r.b) || (broadcast && (*r.a == 1 || *r.b == 1));
  return r;
}

}  // namespace

bool requirements_hold(const Variant& variant, std::span<const int64_t> symbols) {
  for (const auto& block : variant.blocks)
    for (const Instruction& i : block)
      if (i.op == Op::kRequire && !required(i, symbols).holds) return false;
  return true;
}
Status check_extents(const Instruction& instruction, std::span<const int64_t> symbols) {
  const Required r = required(instruction, symbols);
  if (r.holds) return {};
  return invalid(instruction.message + " are " + std::to_string(*r.a) + " and " +
                 std::to_string(*r.b) + ", expected " +
                 std::string(kExpectedRelations[instruction.index]));
}

}  // namespace tilewright
