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

// Cuts the innermost reduction axis of a block into vectors of partial results.
void vectorize_reduction(ScheduleState& s, const std::string& name,
                         std::vector<std::string>& order) {
  const BlockPlace p = s.place(name);
  size_t axis = p.block->axes.size();
  for (size_t i = 0; i < p.block->axes.size(); ++i)
    if (p.block->axes[i].kind == AxisKind::kReduce && !is_one(p.block->axes[i].extent)) axis = i;
  if (axis == p.block->axes.size()) return;
  const DType t = p.block->body.as<Store>()->buffer->dtype;
  const int64_t lanes = s.machine().lanes(std::max(byte_size(t), 4));
  const int64_t extent = extent_or(p.block->axes[axis].extent, 4 * kUnknownExtent);
  if (extent < lanes) return;
  const int64_t factor = extent >= 8 * lanes ? 4 * lanes : lanes;
  const std::string partial = name + "_part";
  if (!s.apply("rfactor", {name, partial}, {static_cast<int64_t>(axis), factor})) return;
  order.push_back(partial);
  if (factor > lanes) {
    if (s.apply("split", {partial + ".lane", partial + ".lc", partial + ".lv"}, {lanes})) {
      s.apply("vectorize", {partial + ".lv"});
      s.apply("unroll", {partial + ".lc"});
    }
  } else {
    s.apply("vectorize", {partial + ".lane"});
  }
  s.apply("vectorize", {name + ".lane"});
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
  std::vector<std::string> order;
  for (const std::string& name : blocks) {
    if (s.place(name).block->init)
      vectorize_reduction(s, name, order);
    else
      vectorize_inner(s, name, rows);
    order.push_back(name);
  }
  if (rows == 0) return true;
  const std::vector<std::string> target = loop_names(s.place(order[0]));
  for (size_t i = 1; i < order.size(); ++i)
    if (!s.apply("compute_at", {order[i], target[rows - 1]})) return false;
  std::string parallel = target[0];
  for (size_t i = 1; i < rows; ++i) {
    const std::string name = blocks[0] + ".rows" + std::to_string(i);
    if (!s.apply("fuse_axes", {parallel, target[i], name})) break;
    parallel = name;
  }
  std::string names;
  for (const std::string& b : blocks) names += (names.empty() ? "" : ", ") + b;
  s.note(names + ": over the same " + std::to_string(rows) +
         " outer axes; sums along a row in vectors of partial sums");
  if (work >= kParallelWork && row_count > 1) s.apply("parallelize", {parallel});
  for (const std::string& name : blocks) stream_rule(s, name);
  return true;
}

}  // namespace tilewright::passes
