// The tile rule, of many products side by side, as the heads of an attention are: what the next of them reads comes
// from memory while one is computed. Each is too short for the processor's prefetchers to have seen how it goes on.
#include <algorithm>
#include <utility>

#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What an iteration of a loop reads of an operand: rows of elements that lie side by side.
struct Rows {
  int64_t elements = 1, count = 1, apart = 0;
};
std::optional<Rows> rows_inside(const BlockPlace& p, const BlockAccess& a,
                                const std::string& loop) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (size_t k = 0; k < p.block->axes.size(); ++k) {
    const auto stride = a.stride(k);
    const int64_t extent = moves_inside(p, loop, k);
    if (!stride || *stride < 0) return std::nullopt;
    if (*stride > 0 && extent > 1) steps.emplace_back(*stride, extent);
  }
  std::sort(steps.begin(), steps.end());
  Rows rows;
  for (const auto& [stride, extent] : steps) {
    if (rows.count == 1 && stride == rows.elements) {
      rows.elements *= extent;
    } else if (rows.count == 1 && stride > rows.elements) {
      rows.count = extent;
      rows.apart = stride;
    } else {
      return std::nullopt;
    }
  }
  rows.apart = std::max(rows.apart, rows.elements);
  return rows;
}

}  // namespace

void TileRule::bring_next_place() {
  constexpr int64_t kPartOfL2 = 4;
  if (!has_many_places() || blocks_ || !hoisted_.empty()) return;
  const std::string around = s_.place(name_).loops[0]->var.name();
  std::vector<std::string> readers{name_};
  for (const Panels& p : copies_)
    if (std::find(staged_.begin(), staged_.end(), p.copy()) != staged_.end())
      readers.push_back(p.block());
  for (const std::string& reader : readers) {
    for (const BlockAccess& a : block_accesses(*s_.place(reader).block)) {
      const auto rows = rows_inside(s_.place(reader), a, around);
      if (a.write || a.buffer->scope != Scope::kParam || s_.is_constant(a.buffer) || !rows ||
          std::find(brought_.begin(), brought_.end(), a.buffer->name) != brought_.end())
        continue;
      const int64_t bytes = rows->elements * rows->count * byte_size(a.buffer->dtype),
                    l2 = s_.machine().l2_bytes;
      // One that takes longer than its operands need has them in time by itself.
      if (bytes_of(*a.buffer) <= l2 || bytes > l2 / kPartOfL2 ||
          2 * static_cast<double>(bytes) < cycles_inside(around))
        continue;
      brought_.push_back(a.buffer->name);
      if (s_.decide_whether(loop("next_") + a.buffer->name, true, Bits::kKept))
        s_.attempt("prefetch_rows", {name_, reader, a.buffer->name, around},
                   {rows->elements, rows->count, rows->apart});
    }
  }
}

}  // namespace tilewright::passes
