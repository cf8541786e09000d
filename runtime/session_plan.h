// What a session prepares once per variant (layout) and once per tuple of input symbols (plan), so
// that a run only follows it.
#pragma once

#include "runtime/arena.h"
#include "runtime/executable.h"
#include "runtime/size_expr.h"
#include "runtime/variant_facts.h"

namespace tilewright {

// Where the storage of a buffer comes from; decided for the root of its aliases.
// kInput: the session sets it before each run, also the key of the run.
enum class Home : uint8_t { kInput, kConstant, kArena, kDynamic, kOutput };

// Facts of a variant that hold for all sizes.
struct VariantLayout {
  const Variant* variant = nullptr;
  bool fixed = false;                       // all input extents are constants
  std::vector<int32_t> run_keys;            // buffers that hold the key of the run
  std::vector<bool> from_input;             // per symbol
  std::vector<int32_t> root;                // per buffer: the owner of its storage
  std::vector<int64_t> offset;              // per buffer: bytes from the beginning of its root
  std::vector<Home> home;                   // per buffer: of its root
  std::vector<std::vector<int32_t>> users;  // per buffer: the blocks whose instructions name it
  std::vector<int32_t>
      output_of_root;  // per buffer: the output whose tensor may become the root's storage, or -1
  std::vector<std::vector<int32_t>>
      members;  // per dynamic root: the buffers that share its storage
  std::vector<std::vector<int32_t>>
      released_after;  // per main instruction: dynamic roots that die there
};
VariantLayout make_layout(const Variant& variant);

// A kernel call with its scalars and workspaces.
struct CallPlan {
  bool at_run =
      false;  // some scalar needs a symbol that the run defines: evaluate again at each call
  std::vector<int64_t> scalars;
  // Bytes of workspace that the kernel states: for all workers together, and for each (a multiple
  // of the alignment).
  int64_t call_bytes = 0, worker_stride = 0;
  int64_t workspace_offset = 0;  // in the arena; the call's part first, then one stride per worker
  int64_t workspace_bytes(int workers) const {
    return align_up(call_bytes) + worker_stride * workers;
  }
};

// Everything that depends on sizes: what a buffer needs, where it lies and with which scalars each
// kernel is called. One is made per tuple of input symbols and kept by the session.
struct Plan {
  std::vector<int64_t> symbols;  // the key: values of the input symbols, the others kUnknownSize
  std::vector<int64_t> bytes;    // per buffer: of its elements; kUnknownSize when the run decides
  std::vector<int64_t> root_bytes;           // per root: storage wanted by it and its aliases
  std::vector<int64_t> offsets;              // per root with Home::kArena: in the arena
  std::vector<std::vector<CallPlan>> calls;  // per block and instruction
  // Per block: a buffer of no legal size, or -1. Such a block may be planned, as a branch that is not
  // taken, but not run.
  std::vector<int32_t> unsized;
  std::vector<int64_t> staging;  // per loop: offset of the staging area of its carried values
  int64_t arena_bytes = 0;       // what the arena must hold at least
  std::vector<int64_t> guards;   // of the arena
  // Under a guard, what is poisoned: per main instruction, the (offset, bytes) in the arena that nothing
  // uses behind it; per block, the roots of buffers that it alone uses, before it runs.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> poisoned_after;
  std::vector<std::vector<int32_t>> poisoned_before;
  bool is_guarded() const { return !poisoned_after.empty(); }
};

// Errors: a negative or overflowing size (internal), an arena beyond all limits.
Result<Plan> make_plan(const VariantLayout& layout, std::vector<int64_t> symbols, int workers,
                       Guard guard = Guard::kNone);

// What is said of a buffer of no legal size.
Status unsized_error(const Variant& variant, int32_t buffer);

// Fills in the scalars and workspace sizes of a call. Errors: a symbol that is not defined yet.
Status evaluate_call(const KernelDesc& kernel, const Instruction& instruction,
                     std::span<const int64_t> symbols, CallPlan& call);

// Are all extents as the variant requires them, as far as these symbols tell?
bool requirements_hold(const Variant& variant, std::span<const int64_t> symbols);

// What a kRequire instruction says of two extents; nothing while one has no value yet.
Status check_extents(const Instruction& instruction, std::span<const int64_t> symbols);

}  // namespace tilewright
