#include "passes/schedule/rules/memory.h"

#include <algorithm>

#include "passes/analysis/accesses.h"
#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/block_kinds.h"

namespace tilewright::passes {

using namespace ir;

namespace {

int64_t bytes_beyond_caches(const ScheduleState& s) { return 2 * s.machine().l3_bytes; }

// Is the third cache faster than memory?
bool uses_third_cache(const ScheduleState& s) {
  return bytes_of_outer_cache(s.machine()) == s.machine().l3_bytes;
}

bool is_fill(const Block& b) { return block_accesses(b).size() == 1; }

void store_past_caches(ScheduleState& s, const std::string& block, int64_t fewest_bytes) {
  const Block& b = *s.place(block).block;
  const auto* st = b.body.as<Store>();
  if (!st || b.init || st->buffer->scope != Scope::kParam) return;
  // What is filled with one value is added to here and there at most.
  const bool fills = is_fill(b);
  if (!fills && touched(s.kernel().body).reads.count(st->buffer.get())) return;
  // Of a result of this size the caches hold no more than the end by the time that it is read from
  // its start. What is stored past them need not be fetched first.
  if (!s.decide_whether(block + ".stream", bytes_of(*st->buffer) >= fewest_bytes, Bits::kKept))
    return;
  s.attempt("stream", {block});
  s.note(block + ": the result is larger than the caches and stored past them");
}

}  // namespace

bool exceeds_caches(const ScheduleState& s, const BufferNode& b) {
  return bytes_of(b) >= bytes_beyond_caches(s);
}
bool exceeds_outer_cache(const ScheduleState& s, const BufferNode& b) {
  constexpr int64_t kOfSeveralThreads = 4;  // second caches, which keep a part each
  return uses_third_cache(s) ? exceeds_caches(s, b)
                             : bytes_of(b) >= kOfSeveralThreads * bytes_of_outer_cache(s.machine());
}
void store_past_caches(ScheduleState& s, const std::string& block) {
  if (is_fill(*s.place(block).block)) return store_copy_past_caches(s, block);
  store_past_caches(s, block, bytes_beyond_caches(s));
}
void store_copy_past_caches(ScheduleState& s, const std::string& block) {
  store_past_caches(
      s, block, uses_third_cache(s) ? bytes_beyond_caches(s) : bytes_of_outer_cache(s.machine()));
}

// Of less, caches of several threads keep some until it is read.
void store_temporaries_past_caches(ScheduleState& s) {
  if (uses_third_cache(s)) return;
  const int64_t outer = bytes_of_outer_cache(s.machine());
  for (const std::string& name : block_names(s)) {
    const Block& b = *s.place(name).block;
    const auto* st = b.body.as<Store>();
    const auto streams = [&] { return s.apply("stream", {name}); };
    if (!st || st->buffer->scope != Scope::kWorkspace || bytes_of(*st->buffer) < 2 * outer ||
        !s.would_go(streams) || !s.decide_whether(name + ".stream", true, Bits::kKept))
      continue;
    if (streams())
      s.note(name + ": what other tasks read is larger than the caches and stored past them");
    else
      s.lose_step();
  }
}

void prefetch_largest(ScheduleState& s, const std::vector<std::string>& blocks, int64_t bytes) {
  Buffer most;
  std::string last;
  for (const std::string& name : blocks)
    for (const BlockAccess& a : block_accesses(*s.place(name).block)) {
      if (a.write || a.buffer->scope != Scope::kParam || s.is_constant(a.buffer)) continue;
      if (most && bytes_of(*a.buffer) < bytes_of(*most)) continue;
      most = a.buffer;
      last = name;
    }
  if (!most || bytes_of(*most) <= s.machine().l2_bytes) return;
  const int64_t ahead =
      s.decide(last + ".ahead", {0, kStretchAhead, kRowsAhead}, bytes, Bits::kKept);
  if (ahead == 0) return;
  s.attempt("prefetch", {last, most->name}, {ahead / byte_size(most->dtype)});
  s.note(last + ": prefetches what lies " + std::to_string(ahead >> 10) + " KiB further on in '" +
         most->name + "'");
}

}  // namespace tilewright::passes
