// Rows: vectors along a row.
#include <algorithm>

#include "passes/analysis/accesses.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/join_terms.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rows_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kAllAtOnce = -1;

// A sum along memory: partial sums in the lanes of several vectors (rfactor), to hide the latency
// of an addition, then combined lane by lane (a tree of halves).
//
// How the innermost reduction of a block is cut into partial results: `lanes` of them in a vector,
// so many at a time; 0: left as it is, -1: all at once, as the lanes of one vector.
int64_t decide_partials(ScheduleState& s, const std::string& name, int64_t extent, int64_t lanes) {
  constexpr int64_t kFewVectors = 8, kMostVectors = 4;
  const bool all_at_once = extent % lanes == 0 && extent <= kFewVectors * lanes;
  // Many short rows in one sum: each is one step, of which the end is masked off.
  const Block& b = *s.place(name).block;
  const auto sums = std::count_if(b.axes.begin(), b.axes.end(), [](const BlockAxis& a) {
    return a.kind == AxisKind::kReduce && !is_one(a.extent);
  });
  const int64_t of_a_row = (extent + lanes - 1) / lanes;
  const int64_t usual = all_at_once                            ? kAllAtOnce
                        : sums > 1 && of_a_row <= kMostVectors ? of_a_row
                        : extent >= kFewVectors * lanes        ? kMostVectors
                                                               : 1;
  // The order of an exact sum is no choice.
  const std::vector<int64_t> values =
      s.sum_order(name) ? std::vector{usual} : with({kAllAtOnce, 0, 1, 2, kMostVectors}, usual);
  return s.decide(name + ".partial_vectors", values, usual, bits_of_order(b));
}

}  // namespace

bool vectorize_reduction(ScheduleState& s, const std::string& name,
                         std::vector<std::string>& order) {
  const SumOrder* sums = s.sum_order(name);
  if (sums && !sums->in_parts) return true;
  join_terms(s, name);
  const BlockPlace p = s.place(name);
  size_t axis = p.block->axes.size();
  for (size_t i = 0; i < p.block->axes.size(); ++i)
    if (p.block->axes[i].kind == AxisKind::kReduce && !is_one(p.block->axes[i].extent)) axis = i;
  if (axis == p.block->axes.size()) return true;
  const DType t = p.block->body.as<Store>()->buffer->dtype;
  const int64_t lanes = s.machine().lanes(std::max(byte_size(t), 4));
  const int64_t extent = extent_or(p.block->axes[axis].extent, 4 * kUnknownExtent);
  if (extent < lanes) return true;
  int64_t vectors = decide_partials(s, name, extent, lanes);
  if (vectors == kAllAtOnce) {
    if (s.apply("vectorize", {loop_of_axis(*p.block, axis)})) return true;
    vectors = extent >= 8 * lanes ? 4 : 1;
  }
  if (vectors == 0) return true;
  const std::string partial = name + "_part";
  const bool factored =
      s.apply("rfactor", {name, partial}, {static_cast<int64_t>(axis), vectors * lanes});
  TW_CHECK(factored || !sums);
  if (!factored) {
    s.lose_step();
    return true;
  }
  order.push_back(partial);
  const bool cut =
      vectors == 1
          ? s.apply("vectorize", {partial + ".lane"})
          : s.apply("split", {partial + ".lane", partial + ".lc", partial + ".lv"}, {lanes}) &&
                s.apply("vectorize", {partial + ".lv"}) && s.apply("unroll", {partial + ".lc"});
  const bool done = cut && s.apply("vectorize", {name + ".lane"});
  TW_CHECK(done || !sums);
  return done;
}

bool vectorize_inner(ScheduleState& s, const std::string& name, size_t rows) {
  const BlockPlace p = s.place(name);
  if (p.loops.size() <= rows || p.block->init) return true;
  const For* inner = p.loops.back();
  const DType t = p.block->body.as<Store>()->buffer->dtype;
  const int64_t lanes = s.machine().lanes(std::max(byte_size(t), 4)),
                extent = extent_or(inner->extent, kUnknownExtent);
  if (extent < lanes / 2) return true;
  const size_t axis = p.block->axes.size() - 1;
  for (const BlockAccess& a : block_accesses(*p.block))
    if (a.write && !(a.strides[axis] && is_one(a.strides[axis]))) return true;
  const std::string loop = inner->var.name();
  const int64_t vectors = decide_vectors_at_once(s, name, is_long_chain(*p.block), extent, lanes);
  return s.apply("split", {loop, name + ".jo", name + ".jv"}, {vectors * lanes}) &&
         s.apply("vectorize", {name + ".jv"});
}

}  // namespace tilewright::passes
