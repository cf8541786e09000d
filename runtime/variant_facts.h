// What follows from a variant that obeys the rules (executable_check.h).
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/executable.h"

namespace tilewright {

// The buffer that owns the storage of `buffer`.
int32_t storage_root(const Variant& variant, int32_t buffer);
// Bytes from the beginning of that storage to where `buffer` begins, kLargestAllocation at most.
int64_t storage_offset(const Variant& variant, int32_t buffer);

// For each symbol whether a plain input dimension defines it; the run defines the others.
std::vector<bool> input_symbols(const Variant& variant);

// Whether the expression names a symbol that the run defines.
bool depends_on_run(const SizeExpr& expr, const std::vector<bool>& from_input);

// Product of the extents times the element size, or nothing.
std::optional<int64_t> logical_bytes(const BufferDesc& buffer, std::span<const int64_t> symbols);

// Whether some state of the loop is read as another pair's computed value: then the copies need a
// staging area.
bool needs_staging(const Variant& variant, const LoopDesc& loop);

// Calls visit(buffer) for each buffer that an instruction itself names (not those in its blocks).
template <typename Visit>
void for_each_buffer(const Variant& variant, const Instruction& instruction, Visit visit) {
  for (int32_t b : instruction.buffers) visit(b);
  if (instruction.op != Op::kLoop) return;
  const LoopDesc& loop = variant.loops[instruction.target];
  for (int32_t b : {loop.trip_count, loop.initial_cond, loop.iteration, loop.body_cond})
    if (b >= 0) visit(b);
  for (const auto& [state, computed] : loop.carried) visit(state), visit(computed);
  for (const LoopDesc::Scan& s : loop.scans) visit(s.element), visit(s.result);
}

// The blocks an instruction runs, -1 for none.
std::pair<int32_t, int32_t> blocks_of(const Variant& variant, const Instruction& instruction);

}  // namespace tilewright
