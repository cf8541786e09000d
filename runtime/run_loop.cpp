// The loop instruction: iterations, carried values and scans (LoopDesc, executable.h).
#include <algorithm>
#include <cstring>

#include "runtime/run_program.h"

namespace tilewright {

Status ProgramRunner::run_loop(const Instruction& instruction) {
  const LoopDesc& loop = variant_->loops[instruction.target];
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (loop.trip_count >= 0) { TW_ASSIGN(trips, read_i64(loop.trip_count, 0)); }
  bool more = true;
  if (loop.initial_cond >= 0) { TW_ASSIGN(more, read_bool(loop.initial_cond)); }
  std::vector<ScanState>& scans = scans_[instruction.target];
  scans.resize(loop.scans.size());
  const int64_t passes = loop.body_cond < 0 ? trips : 0;  // 0: only the run can tell
  int64_t n = 0;
  for (; n < trips && more; ++n) {
    if (loop.iteration >= 0) {
      TW_ASSIGN(const int64_t room, bytes_of(loop.iteration));
      if (room < 8) return internal_error("loop: the iteration buffer is empty");
      std::memcpy(pointers_[loop.iteration], &n, sizeof n);
    }
    TW_RETURN_IF_ERROR(run_block(loop.body));
    for (size_t s = 0; s < scans.size(); ++s)
      TW_RETURN_IF_ERROR(append_scan(loop.scans[s], passes, scans[s]));
    if (loop.body_cond >= 0) { TW_ASSIGN(more, read_bool(loop.body_cond)); }
    TW_RETURN_IF_ERROR(carry(instruction.target));
  }
  if (loop.count_symbol >= 0) symbols_[loop.count_symbol] = n;
  for (size_t s = 0; s < scans.size(); ++s)
    TW_RETURN_IF_ERROR(finish_scan(loop.scans[s], scans[s]));
  return {};
}

// A scan of a known number of passes has room for all of them at once. Others grow like a vector: their
// storage doubles, so that n elements are copied O(n) times in all.
Status ProgramRunner::append_scan(const LoopDesc::Scan& scan, int64_t passes, ScanState& state) {
  TW_ASSIGN(const int64_t bytes, bytes_of(scan.element));
  if (state.element >= 0 && state.element != bytes)
    return invalid("loop: the elements of scan '" + name(scan.result) + "' differ: " +
                   std::to_string(state.element) + " and " + std::to_string(bytes) + " bytes");
  state.element = bytes;
  const int64_t needed = state.used + bytes;
  if (needed > state.storage.capacity) {
    // As far as the limit lets it.
    const int64_t free_bytes = dynamic_limit_ - (dynamic_bytes_ - state.storage.capacity);
    const bool fits = passes > 0 && passes <= free_bytes / bytes;
    const int64_t wanted =
        std::max(needed, fits ? passes * bytes : std::min(2 * state.storage.capacity, free_bytes));
    TW_RETURN_IF_ERROR(grow(state.storage, wanted, state.used, name(scan.result)));
  }
  std::memcpy(state.storage.data + state.used, pointers_[scan.element], bytes);
  state.used = needed;
  return {};
}

// The grown storage becomes the result's; the state starts anew for the next time the loop runs.
Status ProgramRunner::finish_scan(const LoopDesc::Scan& scan, ScanState& state) {
  const std::optional<int64_t> expected = logical_bytes(variant_->buffers[scan.result], symbols_);
  if (expected != state.used)
    return internal_error("loop: scan '" + name(scan.result) + "' has " +
                          std::to_string(state.used) + " bytes, expected " +
                          (expected ? std::to_string(*expected) : "a known shape"));
  if (layout_->home[scan.result] == Home::kDynamic) {
    TW_RETURN_IF_ERROR(grow(state.storage, state.used, state.used, name(scan.result)));
    TW_RETURN_IF_ERROR(trim(state));
    dynamic_bytes_ -= dynamic_[scan.result].capacity;
    dynamic_[scan.result] = std::move(state.storage);
    share_pointer(scan.result);
  } else if (state.used > 0) {
    std::memcpy(pointers_[scan.result], state.storage.data, state.used);
    dynamic_bytes_ -= state.storage.capacity;
  }
  state = {};
  return {};
}

// Gives back the room that the result does not fill, which would count against the limit for as long as the
// result lives.
Status ProgramRunner::trim(ScanState& state) {
  if (state.storage.capacity <= std::max(align_up(state.used), kAlignment)) return {};
  TW_ASSIGN(Storage exact, allocate_storage(state.used));
  std::memcpy(exact.data, state.storage.data, state.used);
  dynamic_bytes_ -= state.storage.capacity - exact.capacity;
  state.storage = std::move(exact);
  return {};
}

Status ProgramRunner::copy_to(int32_t state, int32_t computed, void* target) {
  TW_ASSIGN(const int64_t room, bytes_of(state));
  TW_ASSIGN(const int64_t bytes, bytes_of(computed));
  if (room != bytes)
    return invalid("loop: the carried value '" + name(state) + "' changes from " +
                   std::to_string(room) + " to " + std::to_string(bytes) + " bytes");
  std::memmove(target, pointers_[computed], bytes);
  return {};
}

// Parallel assignment: where one state's new value is read from what another pair overwrites
// (needs_staging), all new values go to the staging area first.
Status ProgramRunner::carry(int32_t index) {
  const LoopDesc& loop = variant_->loops[index];
  if (!needs_staging(*variant_, loop)) {
    for (const auto& [state, computed] : loop.carried)
      TW_RETURN_IF_ERROR(copy_to(state, computed, pointers_[state]));
    return {};
  }
  uint8_t* staging = arena_ + plan_->staging[index];
  for (const auto& [state, computed] : loop.carried) {
    TW_RETURN_IF_ERROR(copy_to(state, computed, staging));
    staging += align_up(plan_->bytes[state]);
  }
  staging = arena_ + plan_->staging[index];
  for (const auto& [state, computed] : loop.carried) {
    std::memcpy(pointers_[state], staging, plan_->bytes[state]);
    staging += align_up(plan_->bytes[state]);
  }
  return {};
}

}  // namespace tilewright
