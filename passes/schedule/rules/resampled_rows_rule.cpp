// Rows that another block alone reads, at places it looks up, are made where that block reads them.
#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rows_rule.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The one block that reads `buffer`; null where there are several.
const Block* only_reader(const ScheduleState& s, const BufferNode* buffer) {
  const Block* found = nullptr;
  for (const BlockPlace& p : all_blocks(s.kernel().body)) {
    if (!touched(p.stmt).reads.count(buffer)) continue;
    if (found) return nullptr;
    found = p.block;
  }
  return found;
}
// Is every element of `buffer` read in the row of the result, at a place along it that is data?
bool reads_own_row(const Block& reader, const BufferNode* buffer) {
  const auto* st = reader.body.as<Store>();
  if (!st || reader.init) return false;
  bool own = true, looked_up = false;
  for_each_expr(st->value, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    if (!l || l->buffer.get() != buffer) return;
    for (size_t d = 0; d + 1 < l->indices.size(); ++d)
      own &= d < st->indices.size() && same_expr(l->indices[d], st->indices[d]);
    for_each_expr(l->indices.back(),
                  [&](const Expr& x) { looked_up |= x.kind() == NodeKind::kLoad; });
  });
  return own && looked_up;
}

}  // namespace

// The second half of a separable resize reads the first's rows at tabled places; fused by rows, an
// intermediate row lives in L1.
std::optional<Taken> take_resampled_rows(ScheduleState& s, const Work& work) {
  const BlockPlace p = s.place(work.block);
  const auto* st = p.block->body.as<Store>();
  if (!st || p.block->init || st->buffer->scope == Scope::kParam || p.block->axes.size() < 2)
    return std::nullopt;
  const Block* reader = only_reader(s, st->buffer.get());
  if (!reader || reader->axes.size() != p.block->axes.size() ||
      !reads_own_row(*reader, st->buffer.get()))
    return std::nullopt;
  const std::string name = reader->name;
  if (!schedule_rows(s, {work.block, name})) return std::nullopt;
  return Taken{.also = {name}, .before = ""};
}

}  // namespace tilewright::passes
