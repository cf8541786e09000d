// Rows: softmax, normalisations, reductions along the innermost dimension. Blocks over the same
// rows share the loops over them, several rows at a time so that their chains of operations
// overlap.
#include "passes/schedule/rules/rows_rule.h"
#include "passes/cost/cache_room.h"

#include <algorithm>

#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Fusion of a chain like softmax (max, exp and sum, divide) by its outer loops, so that a row is
// read from memory once and its passes hit L1. Several rows go together, since horizontal
// reductions at the end of each row are latency bound.
// Loops around a block outside any loop it shares with others' nests: all of them, outermost first.
std::vector<std::string> loop_names(const BlockPlace& p) {
  std::vector<std::string> names;
  for (const For* f : p.loops) names.push_back(f->var.name());
  return names;
}

size_t parallel_axes(const Block& b) {
  size_t n = 0;
  while (n < b.axes.size() && b.axes[n].kind == AxisKind::kParallel) ++n;
  return n;
}

// The number of leading axes that all blocks have alike; reductions have no parallel axis beyond
// these.
size_t shared_rows(const ScheduleState& s, const std::vector<std::string>& blocks) {
  size_t rows = 1000;
  for (const std::string& name : blocks) {
    const BlockPlace p = s.place(name);
    if (p.block->init) rows = std::min(rows, parallel_axes(*p.block));
  }
  const BlockPlace first = s.place(blocks[0]);
  for (const std::string& name : blocks) {
    const BlockPlace p = s.place(name);
    rows = std::min(rows, parallel_axes(*p.block));
    for (size_t i = 0; i < rows; ++i) {
      const bool direct = i < p.loops.size() && loop_of_axis(*p.block, i) == p.loops[i]->var.name();
      if (!direct || !can_prove_equal(p.block->axes[i].extent, first.block->axes[i].extent))
        rows = i;
    }
  }
  return rows;
}

// The innermost of the axes that all blocks share along which there is more than one row.
size_t grouped_axis(const Block& b, size_t rows) {
  size_t axis = rows - 1;
  while (axis > 0 && is_one(b.axes[axis].extent)) --axis;
  return axis;
}

// Elements of a row: all that lies beyond the axes that the blocks share.
int64_t row_length(const Block& b, size_t rows) {
  constexpr int64_t kUnknownLength = 512;
  int64_t n = 1;
  for (size_t i = rows; i < b.axes.size(); ++i)
    n = std::min(n * extent_or(b.axes[i].extent, kUnknownLength), int64_t{1} << 30);
  return n;
}

// Rows that go through each block together, so that the chains of operations along them overlap:
// what is computed of one row alone (the combining of lanes, a division) waits for all before it.
int64_t rows_at_once(const ScheduleState& s, const std::vector<std::string>& blocks, size_t rows) {
  constexpr int64_t kMost = 8, kFewestGroups = 16, kStretchOfMemory = 2048;
  const Block& first = *s.place(blocks[0]).block;
  int64_t row_count = 1, length = 1;
  for (size_t i = 0; i < rows; ++i)
    row_count =
        std::min(row_count * extent_or(first.axes[i].extent, kUnknownExtent), int64_t{1} << 30);
  bool long_chain = false, from_memory = false;
  for (const std::string& name : blocks) {
    const Block& b = *s.place(name).block;
    length = std::max(length, row_length(b, rows));
    long_chain |= is_long_chain(b);
    for (const BlockAccess& a : block_accesses(b)) from_memory |= exceeds_caches(s, *a.buffer);
  }
  // The group stays in the first cache. What comes from memory should come while another row is
  // computed, which only short stretches do; where little is computed, memory sets the pace.
  if (from_memory && !long_chain) return 1;
  const int64_t bytes = from_memory ? kStretchOfMemory : bytes_beside_a_stream(s.machine());
  const int64_t most = std::min({kMost, bytes / (length * 4), row_count / kFewestGroups});
  // Groups of one size, where some number of rows divides them.
  const int64_t n = extent_or(first.axes[grouped_axis(first, rows)].extent, kMost * kUnknownExtent);
  for (int64_t group = std::min(most, n); group > most / 2; --group)
    if (n % group == 0) return group;
  return std::min(most, n);
}

// Rows too short for vectors, many of them behind each other: a vector takes one element of so many
// rows. 0 where rows are longer, or few.
int64_t rows_in_lanes(const ScheduleState& s, const std::vector<std::string>& blocks, size_t rows) {
  constexpr int64_t kFewestVectors = 4;
  if (rows == 0) return 0;
  int bytes = 4;
  int64_t longest = 1;
  for (const std::string& name : blocks) {
    const Block& b = *s.place(name).block;
    longest = std::max(longest, row_length(b, rows));
    for (const BlockAccess& a : block_accesses(b))
      bytes = std::max(bytes, byte_size(a.buffer->dtype));
  }
  const Block& first = *s.place(blocks[0]).block;
  const int64_t lanes = s.machine().lanes(bytes),
                count = extent_or(first.axes[grouped_axis(first, rows)].extent, kUnknownExtent);
  return longest < lanes && count >= kFewestVectors * lanes ? lanes : 0;
}
Bits bits_of_rows(const ScheduleState& s, const std::vector<std::string>& blocks) {
  for (const std::string& name : blocks)
    if (bits_of_order(*s.place(name).block) == Bits::kChanged) return Bits::kChanged;
  return Bits::kKept;
}
// Rows that go through all blocks together: decided with those that fit the first cache in mind.
int64_t decide_group(ScheduleState& s, const std::vector<std::string>& order,
                     const std::vector<std::string>& blocks, size_t rows) {
  const int64_t usual = order.size() > 1 ? std::max<int64_t>(rows_at_once(s, blocks, rows), 1) : 1;
  return s.decide(blocks[0] + ".group", with({1, 2, 4, 8}, usual), usual, Bits::kKept);
}
// The loop over the rows of a group becomes a vector, within those along a row.
bool put_in_lanes(ScheduleState& s, const std::string& name) {
  const std::string lanes = name + ".ri";
  std::vector<std::string> along;
  bool inside = false;
  for (const For* f : s.place(name).loops) {
    if (inside) along.push_back(f->var.name());
    inside |= f->var.name() == lanes;
  }
  std::vector<std::string> order = along;
  order.push_back(lanes);
  if (!along.empty() && !s.apply("reorder", order)) return false;
  for (const std::string& loop : along) s.attempt("unroll", {loop});
  return s.apply("vectorize", {lanes});
}

// What threads share out: the loops around all blocks.
void share_out_rows(ScheduleState& s, const std::vector<std::string>& blocks,
                    const std::vector<std::string>& loops, const SerialWork& work,
                    int64_t row_count) {
  const std::string tasks =
      collapse_loops(s, loops, [&](size_t i) { return blocks[0] + ".rows" + std::to_string(i); });
  if (row_count > 1 && forks(s, blocks[0], work)) s.attempt("parallelize", {tasks});
}

// The loops of a block that are not those over rows, nor within them, become one.
bool join_places(ScheduleState& s, const std::string& name, size_t places) {
  std::vector<std::string> loops = loop_names(s.place(name));
  loops.resize(places);
  const std::string joined = name + ".place" + std::to_string(places - 1);
  return collapse_loops(s, loops, [&](size_t i) { return name + ".place" + std::to_string(i); }) ==
         joined;
}

// `inside`: loops of another block to go under; none: threads share the rows out.
bool take_steps(ScheduleState& s, const std::vector<std::string>& blocks, size_t rows,
                const std::vector<std::string>& inside = {}) {
  SerialWork work;
  int64_t row_count = 1;
  for (const std::string& name : blocks) work += work_of(s, name);
  const BlockPlace first = s.place(blocks[0]);
  for (size_t i = 0; i < rows; ++i)
    row_count *= extent_or(first.block->axes[i].extent, kUnknownExtent);
  int64_t lanes = inside.empty() ? rows_in_lanes(s, blocks, rows) : 0;
  if (lanes > 0 && !s.decide_whether(blocks[0] + ".in_lanes", true, bits_of_rows(s, blocks)))
    lanes = 0;
  std::vector<std::string> order;
  for (const std::string& name : blocks) {
    const bool reduces = static_cast<bool>(s.place(name).block->init);
    if (lanes == 0 &&
        !(reduces ? vectorize_reduction(s, name, order) : vectorize_inner(s, name, rows)))
      return false;
    order.push_back(name);
  }
  if (rows == 0) return true;
  const int64_t group = lanes > 0 ? lanes : decide_group(s, order, blocks, rows);
  size_t around = rows;  // loops around all blocks
  if (group > 1) {
    around = grouped_axis(*s.place(blocks[0]).block, rows) + 1;
    for (const std::string& name : order)
      if (!s.apply("split",
                   {s.place(name).loops[around - 1]->var.name(), name + ".ro", name + ".ri"},
                   {group}))
        return false;
  }
  if (!inside.empty()) {
    if (inside.size() == 1 && rows > 2)
      for (const std::string& name : order)
        if (!join_places(s, name, rows - 1)) return false;
    if (!s.apply("fuse_loops", {order[0], inside.back()})) return false;
    around = inside.size() + 1;
  }
  std::vector<std::string> target = loop_names(s.place(order[0]));
  for (size_t i = 1; i < order.size(); ++i)
    if (!s.apply("fuse_loops", {order[i], target[around - 1]})) return false;
  for (const std::string& name : order)
    if (lanes > 0 && !put_in_lanes(s, name)) return false;
  target.resize(around);
  std::string names;
  for (const std::string& b : blocks) names += (names.empty() ? "" : ", ") + b;
  s.note(names + ": over the same " + std::to_string(rows) + " outer axes; " +
         (lanes > 0 ? "a row in each lane" : "sums along a row in vectors of partial sums") +
         (group > 1 ? ", " + std::to_string(group) + " rows at a time" : ""));
  if (!inside.empty()) return true;
  share_out_rows(s, blocks, target, work, row_count);
  for (const std::string& name : blocks) store_past_caches(s, name);
  if (order.size() > 1) prefetch_largest(s, order, kRowsAhead);
  return true;
}

}  // namespace

bool schedule_rows(ScheduleState& s, const std::vector<std::string>& blocks) {
  const size_t rows = shared_rows(s, blocks);
  if (blocks.size() > 1 && rows == 0) return false;
  return s.all_or_nothing([&] { return take_steps(s, blocks, rows); });
}

bool schedule_rows_inside(ScheduleState& s, const std::vector<std::string>& blocks,
                          const std::vector<std::string>& loops) {
  const size_t rows = shared_rows(s, blocks);
  if (rows < 2 || loops.empty() || (loops.size() > 1 && loops.size() + 1 != rows) ||
      grouped_axis(*s.place(blocks[0]).block, rows) + 1 != rows)
    return false;
  return s.all_or_nothing([&] { return take_steps(s, blocks, rows, loops); });
}

}  // namespace tilewright::passes
