// The verifier of executables: what a session relies on, checked once when a file is read, since a
// file is not trusted. Afterwards every index is in range, aliases form a forest, blocks form a
// tree, no constant or input is written, and every temporary is used only while it lives, so that
// two buffers in one place of the arena cannot meet. What kernels do to their buffers cannot be
// checked here: code is trusted as the file's maker is.
#include "runtime/executable_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "runtime/arena.h"
#include "runtime/size_expr.h"
#include "runtime/variant_facts.h"

namespace tilewright {
namespace {

bool in_range(int64_t index, size_t count) {
  return index >= 0 && index < static_cast<int64_t>(count);
}

// One variant's rules, checked in the order in which later ones rely on earlier ones.
class VariantCheck {
 public:
  VariantCheck(const Executable& executable, const Variant& variant)
      : executable_(executable), v_(variant) {}

  Status run() {
    TW_RETURN_IF_ERROR(check_buffers());
    TW_RETURN_IF_ERROR(check_signature());
    from_input_ = input_symbols(v_);
    for (const BufferDesc& b : v_.buffers) TW_RETURN_IF_ERROR(check_storage(b));
    TW_RETURN_IF_ERROR(check_tables());
    return check_block(0, -1, 0);
  }

 private:
  Error wrong(const std::string& what) const { return internal_error("executable: " + what); }
  const BufferDesc& buffer(int32_t b) const { return v_.buffers[b]; }

  Status check_expr(const SizeExpr& expr, const std::string& what) const {
    Status s = check_size_expr(expr, static_cast<int64_t>(v_.symbols.size()));
    if (!s.ok()) s.error().location = what;
    return s;
  }

  Status check_buffers() {
    for (const BufferDesc& b : v_.buffers) {
      const std::string what = "buffer '" + b.name + "'";
      if (b.dims.size() > kRankLimit)
        return wrong(what + " has rank " + std::to_string(b.dims.size()));
      for (const SizeExpr& d : b.dims) {
        if (d.empty()) return wrong(what + " has an empty extent");
        TW_RETURN_IF_ERROR(check_expr(d, what));
      }
      TW_RETURN_IF_ERROR(check_expr(b.bytes, what));
      if (b.alias_of != -1 && !in_range(b.alias_of, v_.buffers.size()))
        return wrong(what + ": bad alias");
      if (b.alias_offset != 0 && !is_place(b))
        return wrong(what + " begins at byte " + std::to_string(b.alias_offset) +
                     ", expected a multiple of " + std::to_string(kAlignment) +
                     " in another buffer");
    }
    return check_aliases();
  }

  static bool is_place(const BufferDesc& view) {
    return view.alias_of != -1 && view.alias_offset > 0 && view.alias_offset % kAlignment == 0 &&
           view.alias_offset < kLargestAllocation;
  }

  // Follows each chain of views once (colouring: new, on this chain, known to end), in linear time.
  Status check_aliases() {
    std::vector<int8_t> state(v_.buffers.size(),
                              0);  // 1: on the chain being followed, 2: known to end
    for (size_t start = 0; start < v_.buffers.size(); ++start) {
      int32_t b = static_cast<int32_t>(start);
      while (b >= 0 && state[b] == 0) {
        state[b] = 1;
        b = buffer(b).alias_of;
      }
      if (b >= 0 && state[b] == 1)
        return wrong("buffer '" + buffer(b).name + "' is an alias of itself");
      for (b = static_cast<int32_t>(start); b >= 0 && state[b] == 1; b = buffer(b).alias_of)
        state[b] = 2;
    }
    return {};
  }

  Status check_signature() {
    std::set<int32_t> seen;
    for (int32_t b : v_.inputs) {
      if (!in_range(b, v_.buffers.size()) || !seen.insert(b).second)
        return wrong("bad table of inputs");
      if (buffer(b).kind != BufferKind::kInput || buffer(b).alias_of >= 0 || buffer(b).dynamic)
        return wrong("input '" + buffer(b).name + "' is not an input buffer of its own");
    }
    for (size_t b = 0; b < v_.buffers.size(); ++b)
      if (v_.buffers[b].kind == BufferKind::kInput && !seen.count(static_cast<int32_t>(b)))
        return wrong("buffer '" + v_.buffers[b].name +
                     "' is an input that the table of inputs lacks");
    for (int32_t b : v_.outputs)
      if (!in_range(b, v_.buffers.size())) return wrong("bad table of outputs");
    for (int32_t b :
         v_.outputs)  // else a caller's tensor could be too small for all of the storage
      if (storage_offset(v_, b) != 0)
        return wrong("output '" + buffer(b).name + "' does not begin where its storage does");
    return {};
  }

  Status check_storage(const BufferDesc& b) const {
    if (b.updated && b.kind != BufferKind::kInput)
      return wrong("buffer '" + b.name + "' is updated and no input");
    if (b.default_buffer != -1) TW_RETURN_IF_ERROR(check_default(b));
    if (b.kind == BufferKind::kConstant) return check_constant(b);
    if (b.kind == BufferKind::kRunKey) return check_run_key(b);
    if (b.kind == BufferKind::kInput || b.alias_of >= 0 || b.dynamic) return {};
    bool run_sized = depends_on_run(b.bytes, from_input_);
    for (const SizeExpr& d : b.dims) run_sized |= depends_on_run(d, from_input_);
    if (run_sized)
      return wrong("buffer '" + b.name +
                   "' depends on a symbol that the run defines, but is not dynamic");
    return {};
  }

  // The storage of the constant is checked as that of any other.
  Status check_default(const BufferDesc& b) const {
    const bool fits = b.kind == BufferKind::kInput && !b.updated &&
                      in_range(b.default_buffer, v_.buffers.size()) &&
                      buffer(b.default_buffer).kind == BufferKind::kConstant &&
                      buffer(b.default_buffer).dtype == b.dtype &&
                      buffer(b.default_buffer).dims.size() == b.dims.size();
    return fits ? Status() : wrong("buffer '" + b.name + "' has a default that does not fit it");
  }

  Status check_run_key(const BufferDesc& b) const {
    constexpr int64_t kBytes = 8;
    if (b.alias_of >= 0 || b.dynamic || evaluate(b.bytes, {}) != kBytes ||
        logical_bytes(b, {}) != kBytes)
      return wrong("the key of the run '" + b.name + "' is not 8 bytes of its own");
    return {};
  }

  Status check_constant(const BufferDesc& b) const {
    const std::optional<int64_t> bytes = evaluate(b.bytes, {}), logical = logical_bytes(b, {});
    if (b.alias_of >= 0 || b.dynamic || !bytes || !logical)
      return wrong("constant '" + b.name + "' has no fixed size");
    const int64_t size = std::max(*bytes, *logical), total = executable_.constants_bytes;
    if (*bytes < 0 || b.constant_offset < 0 || b.constant_offset > total ||
        size > total - b.constant_offset)
      return wrong("constant '" + b.name + "' exceeds the constant section of " +
                   std::to_string(total) + " bytes");
    if (b.constant_offset % byte_size(b.dtype) != 0)
      return wrong("constant '" + b.name + "' is not aligned");
    return {};
  }

  Status check_tables() {
    if (v_.blocks.empty()) return wrong("no main block");
    for (const ProfileRow& p : v_.profile) {
      TW_RETURN_IF_ERROR(check_expr(p.flops, "profile row"));
      TW_RETURN_IF_ERROR(check_expr(p.bytes, "profile row"));
    }
    block_used_.assign(v_.blocks.size(), false);
    live_.assign(v_.buffers.size(), LiveInterval{0, INT32_MAX, INT32_MIN});
    for (size_t b = 0; b < v_.buffers.size(); ++b) {
      LiveInterval& life = live_[storage_root(v_, static_cast<int32_t>(b))];
      life.first = std::min(life.first, v_.buffers[b].first_use);
      life.last = std::max(life.last, v_.buffers[b].last_use);
    }
    is_output_root_.assign(v_.buffers.size(), false);
    for (int32_t b : v_.outputs) is_output_root_[storage_root(v_, b)] = true;
    return {};
  }

  // Blocks are visited from the main one. Each may be reached once: the same block twice would be
  // two bodies with one set of planned calls.
  // `top` is the instruction of the main block that encloses this one, -1 in the main block itself.
  Status check_block(int32_t block, int32_t top, int depth) {
    if (depth > kBlockDepthLimit)
      return limit_error("executable: blocks nest deeper than " + std::to_string(kBlockDepthLimit));
    if (block_used_[block]) return wrong("block " + std::to_string(block) + " is used twice");
    block_used_[block] = true;
    for (size_t i = 0; i < v_.blocks[block].size(); ++i) {
      const Instruction& instruction = v_.blocks[block][i];
      TW_RETURN_IF_ERROR(check_instruction(instruction));
      const int32_t here = top >= 0 ? top : static_cast<int32_t>(i);
      TW_RETURN_IF_ERROR(check_lives(instruction, here));
      const auto [a, b] = blocks_of(v_, instruction);
      if (a >= 0) TW_RETURN_IF_ERROR(check_block(a, here, depth + 1));
      if (b >= 0) TW_RETURN_IF_ERROR(check_block(b, here, depth + 1));
    }
    return {};
  }

  // Lives are counted in instructions of the main block, so one inside a branch counts as `top`.
  Status check_lives(const Instruction& instruction, int32_t top) const {
    Status status;
    for_each_buffer(v_, instruction, [&](int32_t b) {
      const int32_t root = storage_root(v_, b);
      const BufferKind kind = buffer(root).kind;
      if (kind == BufferKind::kInput || kind == BufferKind::kConstant ||
          kind == BufferKind::kRunKey || is_output_root_[root])
        return;
      const LiveInterval& life = live_[root];
      if (top >= life.first && top <= life.last) return;
      status = wrong("buffer '" + buffer(b).name + "' is used by instruction " +
                     std::to_string(top) + ", outside its life [" + std::to_string(life.first) +
                     ", " + std::to_string(life.last) + "]");
    });
    return status;
  }

  Status check_instruction(const Instruction& i) const {
    for (int32_t b : i.buffers)
      if (!in_range(b, v_.buffers.size()))
        return wrong("an instruction names buffer " + std::to_string(b));
    if (i.profile != -1 && !in_range(i.profile, v_.profile.size())) return wrong("bad profile row");
    for (const SizeExpr& s : i.scalars) TW_RETURN_IF_ERROR(check_expr(s, "scalar of a call"));
    switch (i.op) {
      case Op::kCall: return check_call(i);
      case Op::kDefineSymbol: return check_define(i);
      case Op::kAllocate:
        return i.buffers.size() == 1 ? Status() : wrong("allocate takes one buffer");
      case Op::kCopy: return check_copy(i);
      case Op::kIf: return check_if(i);
      case Op::kLoop: return check_loop(i);
      case Op::kFail: return {};
      case Op::kCheckIndices: return check_indices(i);
      case Op::kRequire:
        return i.scalars.size() == 2 && i.index >= 0 && i.index <= 2
                   ? Status()
                   : wrong("require takes two extents and a relation");
      case Op::kStart: return check_start(i);
    }
    return wrong("unknown instruction " + std::to_string(int(i.op)));
  }

  // Checks that a start names a range inside a result of static size.
  Status check_start(const Instruction& i) const {
    if (i.buffers.size() != 1) return wrong("start takes one buffer");
    const BufferDesc& b = buffer(i.buffers[0]);
    const bool seen = b.kind == BufferKind::kOutput || (b.kind == BufferKind::kInput && b.updated);
    const std::optional<int64_t> bytes = evaluate(b.bytes, {});
    if (!seen || b.alias_of >= 0 || b.dynamic || !bytes || i.target < 0 || i.index < 0 ||
        i.index > i.limit || i.limit > *bytes)
      return wrong("start " + std::to_string(i.target) + " of buffer '" + b.name + "' is not one");
    return {};
  }

  Status check_call(const Instruction& i) const {
    if (!in_range(i.target, v_.kernels.size()))
      return wrong("a call names kernel " + std::to_string(i.target));
    const KernelDesc& k = v_.kernels[i.target];
    for (const SizeExpr* e : {&k.call_workspace, &k.worker_workspace}) {
      Status s = check_size_expr(*e, static_cast<int64_t>(i.scalars.size()));
      if (!s.ok()) return wrong("workspace of kernel '" + k.name + "': " + s.error().to_string());
    }
    return {};
  }

  Status check_define(const Instruction& i) const {
    if (i.buffers.size() != 1 || buffer(i.buffers[0]).dtype != DType::kInt64 || i.index < 0)
      return wrong("define_symbol takes an element of one i64 buffer");
    return check_defined_symbol(i.target);
  }

  Status check_indices(const Instruction& i) const {
    if (i.buffers.size() != 2 || buffer(i.buffers[1]).dtype != DType::kUInt64)
      return wrong("check_indices takes indices and a u64 buffer");
    return {};
  }

  Status check_defined_symbol(int32_t symbol) const {
    if (!in_range(symbol, v_.symbols.size()))
      return wrong("an instruction defines symbol " + std::to_string(symbol));
    if (from_input_[symbol])
      return wrong("symbol '" + v_.symbols[symbol] + "' is defined by an input and by the run");
    return {};
  }

  Status check_written(int32_t b) const {
    const BufferDesc& root = buffer(storage_root(v_, b));
    if (root.kind == BufferKind::kConstant || root.kind == BufferKind::kRunKey ||
        (root.kind == BufferKind::kInput && !root.updated))
      return wrong("buffer '" + buffer(b).name + "' cannot be written");
    return {};
  }

  Status check_copy(const Instruction& i) const {
    if (i.buffers.size() != 2) return wrong("copy takes two buffers");
    return check_written(i.buffers[0]);
  }

  Status check_if(const Instruction& i) const {
    if (i.buffers.size() != 1 || buffer(i.buffers[0]).dtype != DType::kBool)
      return wrong("if takes one bool buffer");
    for (int32_t b : {i.block_a, i.block_b})
      if (b != -1 && !in_range(b, v_.blocks.size()))
        return wrong("if names block " + std::to_string(b));
    return {};
  }

  Status check_scalar(int32_t b, DType dtype, const char* what) const {
    if (b == -1) return {};
    if (in_range(b, v_.buffers.size()) && buffer(b).dtype == dtype) return {};
    return wrong("loop: " + std::string(what) + " is no " + std::string(name(dtype)) + " buffer");
  }

  Status check_loop(const Instruction& i) const {
    if (!in_range(i.target, v_.loops.size()))
      return wrong("a loop instruction names loop " + std::to_string(i.target));
    const LoopDesc& l = v_.loops[i.target];
    TW_RETURN_IF_ERROR(check_scalar(l.trip_count, DType::kInt64, "trip count"));
    TW_RETURN_IF_ERROR(check_scalar(l.initial_cond, DType::kBool, "initial condition"));
    TW_RETURN_IF_ERROR(check_scalar(l.iteration, DType::kInt64, "iteration"));
    TW_RETURN_IF_ERROR(check_scalar(l.body_cond, DType::kBool, "condition"));
    if (!in_range(l.body, v_.blocks.size())) return wrong("loop without a body");
    if (l.trip_count < 0 && l.body_cond < 0) return wrong("loop without an end");
    if (l.iteration >= 0) TW_RETURN_IF_ERROR(check_written(l.iteration));
    for (const auto& [state, computed] : l.carried)
      TW_RETURN_IF_ERROR(check_carried(state, computed));
    for (const LoopDesc::Scan& s : l.scans) {
      if (!in_range(s.element, v_.buffers.size()) || !in_range(s.result, v_.buffers.size()))
        return wrong("loop: bad scan");
      TW_RETURN_IF_ERROR(check_written(s.result));
      if (buffer(storage_root(v_, s.result)).dynamic && buffer(s.result).alias_of >= 0)
        return wrong("loop: the scan '" + buffer(s.result).name + "' is a view");
    }
    return l.count_symbol == -1 ? Status() : check_defined_symbol(l.count_symbol);
  }

  Status check_carried(int32_t state, int32_t computed) const {
    if (!in_range(state, v_.buffers.size()) || !in_range(computed, v_.buffers.size()))
      return wrong("loop: bad carried value");
    TW_RETURN_IF_ERROR(check_written(state));
    if (buffer(storage_root(v_, state)).dynamic)
      return unsupported("loop: the carried value '" + buffer(state).name +
                         "' has a shape that the run defines");
    return {};
  }

  const Executable& executable_;
  const Variant& v_;
  std::vector<bool> from_input_, block_used_, is_output_root_;
  std::vector<LiveInterval> live_;  // of each storage root
};

Status check_same_signature(const Variant& a, const Variant& b) {
  auto same = [&](const std::vector<int32_t>& x, const std::vector<int32_t>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](int32_t p, int32_t q) {
      return a.buffers[p].dtype == b.buffers[q].dtype && a.buffers[p].name == b.buffers[q].name &&
             a.buffers[p].updated == b.buffers[q].updated &&
             (a.buffers[p].default_buffer < 0) == (b.buffers[q].default_buffer < 0);
    });
  };
  if (same(a.inputs, b.inputs) && same(a.outputs, b.outputs)) return {};
  return internal_error("executable: two variants have different inputs or outputs");
}

}  // namespace

Status check_executable(const Executable& executable) {
  if (executable.variants.empty()) return internal_error("executable: no variant");
  if (executable.constants_bytes < 0)
    return internal_error("executable: negative size of the constant section");
  for (size_t i = 0; i < executable.variants.size(); ++i) {
    Status s = VariantCheck(executable, executable.variants[i]).run();
    if (s.ok()) s = check_same_signature(executable.variants[0], executable.variants[i]);
    if (!s.ok()) {
      Error e = s.error();
      e.location = "variant " + std::to_string(i) + (e.location.empty() ? "" : ", " + e.location);
      return e;
    }
  }
  return {};
}

}  // namespace tilewright
