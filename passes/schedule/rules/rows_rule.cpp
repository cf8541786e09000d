#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

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

// Reduction axes whose addresses run on become one, of which more is whole vectors. Exact kernels
// say which.
void join_reduction(ScheduleState& s, const std::string& name) {
  const SumOrder* order = s.sum_order(name);
  size_t joined = 1;
  for (bool more = true; more; ++joined) {
    more = false;
    if (order && joined >= order->joined) return;
    const BlockPlace p = s.place(name);
    const Block& b = *p.block;
    std::vector<size_t> axes;
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (b.axes[i].kind == AxisKind::kReduce) axes.push_back(i);
    if (axes.size() < 2) return;
    const size_t inner = axes.back(), outer = axes[axes.size() - 2];
    const std::string around = loop_of_axis(b, outer), inside = loop_of_axis(b, inner);
    if (around.empty() || inside.empty() || is_one(b.axes[outer].extent) ||
        is_one(b.axes[inner].extent) ||
        (!order && !runs_on(block_accesses(b), outer, inner, b.axes[inner].extent)))
      return;
    more = s.all_or_nothing([&] {
      return s.apply("fuse_axes", {around, inside, inside + "_on"}) &&
             s.apply("join_axes", {name},
                     {static_cast<int64_t>(outer), static_cast<int64_t>(inner)});
    });
    TW_CHECK(more || !order);
  }
}

// Cuts the innermost reduction axis of a block into vectors of partial results; the few vectors of
// a short one are all combined at once.
void vectorize_reduction(ScheduleState& s, const std::string& name,
                         std::vector<std::string>& order) {
  constexpr int64_t kFewVectors = 8;
  const SumOrder* sums = s.sum_order(name);
  if (sums && !sums->in_parts) return;
  join_reduction(s, name);
  const BlockPlace p = s.place(name);
  size_t axis = p.block->axes.size();
  for (size_t i = 0; i < p.block->axes.size(); ++i)
    if (p.block->axes[i].kind == AxisKind::kReduce && !is_one(p.block->axes[i].extent)) axis = i;
  if (axis == p.block->axes.size()) return;
  const DType t = p.block->body.as<Store>()->buffer->dtype;
  const int64_t lanes = s.machine().lanes(std::max(byte_size(t), 4));
  const int64_t extent = extent_or(p.block->axes[axis].extent, 4 * kUnknownExtent);
  if (extent < lanes) return;
  if (extent % lanes == 0 && extent <= kFewVectors * lanes &&
      s.apply("vectorize", {loop_of_axis(*p.block, axis)}))
    return;
  const int64_t factor = extent >= 8 * lanes ? 4 * lanes : lanes;
  const std::string partial = name + "_part";
  const bool factored = s.apply("rfactor", {name, partial}, {static_cast<int64_t>(axis), factor});
  TW_CHECK(factored || !sums);
  if (!factored) return;
  order.push_back(partial);
  if (factor > lanes) {
    if (s.apply("split", {partial + ".lane", partial + ".lc", partial + ".lv"}, {lanes})) {
      s.apply("vectorize", {partial + ".lv"});
      s.apply("unroll", {partial + ".lc"});
    }
  } else {
    s.apply("vectorize", {partial + ".lane"});
  }
  const bool combined = s.apply("vectorize", {name + ".lane"});
  TW_CHECK(combined || !sums);
}

// The axes of a pointwise block beyond the rows: the innermost is split into vectors.
void vectorize_inner(ScheduleState& s, const std::string& name, size_t rows) {
  const BlockPlace p = s.place(name);
  if (p.loops.size() <= rows || p.block->init) return;
  const For* inner = p.loops.back();
  const DType t = p.block->body.as<Store>()->buffer->dtype;
  const int64_t lanes = s.machine().lanes(std::max(byte_size(t), 4));
  if (extent_or(inner->extent, kUnknownExtent) < lanes / 2) return;
  const auto accesses = block_accesses(*p.block);
  const size_t axis = p.block->axes.size() - 1;
  for (const BlockAccess& a : accesses)
    if (a.write && !(a.strides[axis] && is_one(a.strides[axis]))) return;
  const int64_t vectors =
      vectors_at_once(s, *p.block, extent_or(inner->extent, kUnknownExtent), lanes);
  const std::string loop = inner->var.name();
  if (s.apply("split", {loop, name + ".jo", name + ".jv"}, {vectors * lanes}))
    s.apply("vectorize", {name + ".jv"});
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
  const int64_t bytes = from_memory ? kStretchOfMemory : s.machine().l1_bytes / 4;
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
// The loop over the rows of a group becomes a vector, within those along a row.
void put_in_lanes(ScheduleState& s, const std::string& name) {
  const std::string lanes = name + ".ri";
  std::vector<std::string> along;
  bool inside = false;
  for (const For* f : s.place(name).loops) {
    if (inside) along.push_back(f->var.name());
    inside |= f->var.name() == lanes;
  }
  std::vector<std::string> order = along;
  order.push_back(lanes);
  if (along.empty() || s.apply("reorder", order)) {
    for (const std::string& loop : along) s.apply("unroll", {loop});
    s.apply("vectorize", {lanes});
  }
}

}  // namespace

bool rows_rule(ScheduleState& s, const std::vector<std::string>& blocks) {
  const size_t rows = shared_rows(s, blocks);
  int64_t work = 0, row_count = 1;
  for (const std::string& name : blocks) work += instances(*s.place(name).block);
  {
    const BlockPlace first = s.place(blocks[0]);
    for (size_t i = 0; i < rows; ++i)
      row_count *= extent_or(first.block->axes[i].extent, kUnknownExtent);
    if (blocks.size() > 1 && rows == 0) return false;
  }
  const int64_t lanes = rows_in_lanes(s, blocks, rows);
  std::vector<std::string> order;
  for (const std::string& name : blocks) {
    if (lanes == 0 && s.place(name).block->init)
      vectorize_reduction(s, name, order);
    else if (lanes == 0)
      vectorize_inner(s, name, rows);
    order.push_back(name);
  }
  if (rows == 0) return true;
  const int64_t group = lanes > 0 ? lanes : order.size() > 1 ? rows_at_once(s, blocks, rows) : 1;
  size_t around = rows;  // loops around all blocks
  if (group > 1) {
    around = grouped_axis(*s.place(blocks[0]).block, rows) + 1;
    for (const std::string& name : order)
      s.apply("split", {s.place(name).loops[around - 1]->var.name(), name + ".ro", name + ".ri"},
              {group});
  }
  const std::vector<std::string> target = loop_names(s.place(order[0]));
  for (size_t i = 1; i < order.size(); ++i)
    if (!s.apply("compute_at", {order[i], target[around - 1]})) return false;
  if (lanes > 0)
    for (const std::string& name : order) put_in_lanes(s, name);
  std::string parallel = target[0];
  for (size_t i = 1; i < around; ++i) {
    const std::string name = blocks[0] + ".rows" + std::to_string(i);
    if (!s.apply("fuse_axes", {parallel, target[i], name})) break;
    parallel = name;
  }
  std::string names;
  for (const std::string& b : blocks) names += (names.empty() ? "" : ", ") + b;
  s.note(names + ": over the same " + std::to_string(rows) + " outer axes; " +
         (lanes > 0 ? "a row in each lane" : "sums along a row in vectors of partial sums") +
         (group > 1 ? ", " + std::to_string(group) + " rows at a time" : ""));
  if (work >= kParallelWork && row_count > 1) s.apply("parallelize", {parallel});
  for (const std::string& name : blocks) stream_rule(s, name);
  if (order.size() > 1) prefetch_rule(s, order, kRowsAhead);
  return true;
}

}  // namespace tilewright::passes
