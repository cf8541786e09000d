// What kernels larger than the caches do about memory.
#include <algorithm>

#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

int64_t bytes_of(const BufferNode& b) {
  int64_t bytes = byte_size(b.dtype);
  for (const Expr& e : b.shape)
    bytes = std::min<int64_t>(bytes * extent_or(e, 0), int64_t{1} << 40);
  return bytes;
}

bool exceeds_caches(const ScheduleState& s, const BufferNode& b) {
  return bytes_of(b) >= 2 * s.machine().l3_bytes;
}

void stream_rule(ScheduleState& s, const std::string& block) {
  const Block& b = *s.place(block).block;
  const auto* st = b.body.as<Store>();
  // Of a result of this size the caches hold no more than the end by the time that it is read from
  // its start. What is stored past them need not be fetched first.
  if (!st || b.init || !exceeds_caches(s, *st->buffer) || !s.apply("stream", {block})) return;
  s.note(block + ": the result is larger than the caches and stored past them");
}

void prefetch_rule(ScheduleState& s, const std::vector<std::string>& blocks, int64_t bytes) {
  const BlockAccess* most = nullptr;
  std::string last;
  std::vector<std::vector<BlockAccess>> accesses;
  for (const std::string& name : blocks) accesses.push_back(block_accesses(*s.place(name).block));
  for (size_t i = 0; i < blocks.size(); ++i)
    for (const BlockAccess& a : accesses[i]) {
      if (a.write || a.buffer->scope != Scope::kParam || s.is_constant(a.buffer)) continue;
      if (most && bytes_of(*a.buffer) < bytes_of(*most->buffer)) continue;
      most = &a;
      last = blocks[i];
    }
  if (!most || bytes_of(*most->buffer) <= s.machine().l2_bytes) return;
  const std::string name = most->buffer->name;
  if (s.apply("prefetch", {last, name}, {bytes / byte_size(most->buffer->dtype)}))
    s.note(last + ": brings what lies " + std::to_string(bytes >> 10) + " KiB further on in '" +
           name + "' near");
}

}  // namespace tilewright::passes
