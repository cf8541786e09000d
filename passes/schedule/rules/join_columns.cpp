// The tile rule: columns that run on from one axis to the next, as the pixels of an image do where no window moves
// over them, are cut anew, into rows of whole vectors. A row of 56 pixels fills three vectors and a half; an image of
// 56 such rows is one of 49 rows of 64.
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/join_terms.h"
#include "passes/schedule/rules/rows_of_tiles.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

std::vector<size_t> parallel_axes(const Block& b) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (b.axes[i].kind == AxisKind::kParallel) axes.push_back(i);
  return axes;
}

// May the n-th and the m-th of its parallel axes be one?
bool may_join(const Block& b, size_t n, size_t m) {
  const std::vector<size_t> axes = parallel_axes(b);
  return !asks_where(b, axes[n]) && !asks_where(b, axes[m]) &&
         runs_on(block_accesses(b), axes[n], axes[m], b.axes[axes[m]].extent);
}

// How long rows of whole vectors are that `elements` make; 0: they make none.
int64_t length_of_rows(int64_t elements, int64_t lanes) {
  constexpr int64_t kMostVectors = 8, kUsual = 4;
  int64_t length = 0;
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors)
    if (elements % (vectors * lanes) == 0 &&
        (vectors % kUsual == 0 || length % (kUsual * lanes) != 0 || length == 0))
      length = vectors * lanes;
  return length;
}

bool cut_anew(ScheduleState& s, const std::string& name, size_t n, size_t m, int64_t length) {
  const Block b = *s.place(name).block;
  const std::vector<size_t> axes = parallel_axes(b);
  return join_two_axes(s, b, axes[n], axes[m]) &&
         s.apply("split_axis", {name, name + ".y", name + ".x"},
                 {static_cast<int64_t>(axes[n]), length});
}

}  // namespace

void TileRule::join_columns() {
  const Block e = *s_.place(e_).block;
  const size_t axes = e.axes.size();
  if (parallel_axes(block_).size() != axes || parallel_axes(e).size() != axes) return;
  const BlockAccess store = block_accesses(e).back();
  size_t column = axes;
  for (size_t n = 0; n < axes; ++n)
    if (!is_one(e.axes[n].extent) && store.stride(n) == 1) column = n;
  if (column == axes) return;
  const auto columns = as_int(e.axes[column].extent);
  const int64_t lanes = s_.machine().lanes(byte_size(store.buffer->dtype));
  if (!columns || *columns % lanes == 0) return;
  for (size_t n = 0; n < column; ++n) {
    const auto rows = as_int(e.axes[n].extent);
    const int64_t length = rows && *rows > 1 ? length_of_rows(*rows * *columns, lanes) : 0;
    if (length == 0 || !may_join(e, n, column) || !may_join(block_, n, column)) continue;
    const auto cut = [&] {
      return cut_anew(s_, name_, n, column, length) && cut_anew(s_, e_, n, column, length);
    };
    if (!s_.would_go(cut) || !s_.decide_whether(loop("whole_vectors"), true, Bits::kKept) ||
        !s_.all_or_nothing(cut))
      continue;
    // What is made of the results goes over them alike.
    for (const std::string& other : block_names(s_)) {
      const BlockPlace p = s_.place(other);
      if (other != name_ && other != e_ && kind_of(*p.block) == Applies::kPointwise &&
          p.block->axes.size() == axes && p.loops.size() == axes && may_join(*p.block, n, column))
        s_.all_or_nothing([&] { return cut_anew(s_, other, n, column, length); });
    }
    block_ = *s_.place(name_).block;
    s_.note(name_ + ": rows of " + std::to_string(*columns) + " columns run on: cut into rows of " +
            std::to_string(length));
    return;
  }
}

}  // namespace tilewright::passes
