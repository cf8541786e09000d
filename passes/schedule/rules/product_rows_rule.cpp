// Products of many places, and rows of their results, as the scores of an attention and their softmax are in
// training, and the gradients of both: a place at a time, so that results are in cache when their rows are
// worked on. (What training keeps is stored; inference has a form that never does, attention_rule.)
//
//    for places:                                    tasks
//      for io: for jo: for k: ...                   the product, in tiles
//      for rows: max, exp, sum, scale               of results that the task has just made
#include <algorithm>
#include <set>

#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rows_rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool reduces_a_row(const ScheduleState& s, const std::string& name) {
  const Block& b = *s.place(name).block;
  const SumOrder* sums = s.sum_order(name);
  return reduces_along_rows(b) && !worth_a_tile(s, b) && (!sums || sums->in_parts);
}

// The loops around the product's tiles: one for each axis before those of its rows and columns, or one for all.
std::vector<std::string> loops_of_places(const BlockPlace& product) {
  std::vector<Expr> extents;
  Expr all = 1;
  for (const BlockAxis& a : product.block->axes)
    if (a.kind == AxisKind::kParallel) extents.push_back(a.extent);
  extents.resize(extents.size() - std::min<size_t>(extents.size(), 2));
  for (const Expr& e : extents) all = simplify(all * e);
  std::vector<std::string> loops;
  for (const For* f : product.loops) {
    if (loops.empty() && can_prove_equal(f->extent, all)) return {f->var.name()};
    if (loops.size() == extents.size() || !can_prove_equal(f->extent, extents[loops.size()])) break;
    loops.push_back(f->var.name());
  }
  return loops.size() == extents.size() ? loops : std::vector<std::string>{};
}

// What the rows of the next place read and store comes near while this one's product is computed.
void bring_next_rows(ScheduleState& s, const std::string& product,
                     const std::vector<std::string>& rows, const std::string& around,
                     int64_t places) {
  std::set<std::string> seen;
  for (const std::string& n : rows) {
    for (const BlockAccess& a : block_accesses(*s.place(n).block)) {
      const int64_t elements = bytes_of(*a.buffer) / byte_size(a.buffer->dtype) / places;
      if (a.buffer->scope != Scope::kParam || bytes_of(*a.buffer) <= s.machine().l2_bytes ||
          !a.buffer->layout.empty() || !seen.insert(a.buffer->name).second ||
          !s.decide_whether(product + ".next_" + a.buffer->name, true, Bits::kKept))
        continue;
      const auto kind = static_cast<int64_t>(a.write ? PrefetchKind::kWrite : PrefetchKind::kOuter);
      s.attempt("prefetch_next", {product, n, a.buffer->name, around}, {elements, kind, 1});
    }
  }
}

}  // namespace

std::optional<Taken> take_product_rows(ScheduleState& s, const Work&) {
  const std::vector<std::string> names = block_names(s);
  if (names.size() < 2 || kind_of(*s.place(names[0]).block) != Applies::kReduction ||
      !worth_a_tile(s, *s.place(names[0]).block))
    return std::nullopt;
  const std::string epilogue = epilogue_of(s, names[0], names);
  std::vector<std::string> rows;
  bool reduction = false;
  for (const std::string& n : names) {
    if (n == names[0] || n == epilogue) continue;
    const Block& b = *s.place(n).block;
    if (!is_simple(b) || (is_reduction(b) && !reduces_a_row(s, n))) return std::nullopt;
    reduction |= is_reduction(b);
    rows.push_back(n);
  }
  if (!reduction) return std::nullopt;
  const bool done = s.all_or_nothing([&] {
    const auto tile = take_tile(s, {names[0], epilogue, true});
    if (!tile) return false;
    std::erase_if(rows, [&](const std::string& n) { return tile->also.count(n) != 0; });
    const std::vector<std::string> places = loops_of_places(s.place(names[0]));
    if (!schedule_rows_inside(s, rows, places)) return false;
    int64_t n = 1;
    for (size_t i = 0; i < places.size(); ++i)
      n *= extent_or(s.place(names[0]).loops[i]->extent, 1);
    bring_next_rows(s, names[0], rows, places.back(), n);
    return true;
  });
  return done ? std::optional(Taken{.all = true}) : std::nullopt;
}

}  // namespace tilewright::passes
