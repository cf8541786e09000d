#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

void stream_rule(ScheduleState& s, const std::string& block) {
  const Block& b = *s.place(block).block;
  const auto* st = b.body.as<Store>();
  if (!st || b.init) return;
  int64_t bytes = byte_size(st->buffer->dtype);
  for (const Expr& e : st->buffer->shape)
    bytes = std::min<int64_t>(bytes * extent_or(e, 0), int64_t{1} << 40);
  // Of a result of this size the caches hold no more than the end by the time that it is read from
  // its start. What is stored past them need not be fetched first.
  if (bytes < 2 * s.machine().l3_bytes || !s.apply("stream", {block})) return;
  s.note(block + ": the result is larger than the caches and stored past them");
}

}  // namespace tilewright::passes
