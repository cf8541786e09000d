// Lanes beyond the last column of a tile's rows are scratch: written whole, the tile stays in registers, which a masked
// store would force it out of. That asks for two proofs over the rows: that the lanes stay within their row, and that
// the columns they fall on are set by no one.
#include "passes/loops/scratch_lanes.h"

#include <algorithm>
#include <numeric>

#include "ir/loops/rewrite.h"
#include "passes/loops/lanes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Bound {  // lanes whose column, from `first` on, is less than `columns`
  Expr first;
  int64_t columns;
};
std::optional<Bound> bound_of(const Expr& mask) {
  const auto* less = mask.as<Binary>();
  const auto* lanes = less && less->op == BinaryOp::kLt ? less->a.as<Ramp>() : nullptr;
  const auto* n = lanes ? less->b.as<Broadcast>() : nullptr;
  const auto columns = n ? as_int(n->value) : std::nullopt;
  if (!columns || !is_one(lanes->stride)) return std::nullopt;
  return Bound{lanes->base, *columns};
}

// Terms that are multiples of `row`, which is 0 for a buffer of one row, and the others.
std::pair<Linear, Linear> split_row(const Linear& l, int64_t row) {
  Linear whole, rest;
  rest.constant = l.constant;
  for (const LinearTerm& t : l.terms)
    (row > 0 && t.coefficient % row == 0 ? whole : rest).add(t.factors, t.coefficient);
  return {whole, rest};
}

}  // namespace

ScratchLanes::ScratchLanes(const Stmt& s) { visit(s); }

void ScratchLanes::visit(const Stmt& s) {
  if (const auto* f = s.as<For>()) {
    ranges_.set(f->var, f->extent);
    const Var saved = lane_;
    const bool was = conditional_;
    if (f->loop_kind == LoopKind::kVectorized) {
      lane_ = f->var;
      conditional_ = false;
    }
    visit(f->body);
    lane_ = saved;
    conditional_ = was;
  } else if (const auto* i = s.as<If>()) {
    const bool was = conditional_;
    conditional_ |= lane_ && uses_var(i->condition, lane_);
    visit(i->then);
    conditional_ = was;
    if (i->otherwise) visit(i->otherwise);
  } else if (const auto* q = s.as<Seq>()) {
    for (const Stmt& x : q->stmts) visit(x);
  } else if (const auto* l = s.as<Let>()) {
    visit(l->body);
  } else if (const auto* a = s.as<Allocate>()) {
    visit(a->body);
  } else if (const auto* w = s.as<While>()) {
    visit(w->body);
  } else if (const auto* st = s.as<Store>()) {
    if (st->buffer->scope != Scope::kLocal || st->indices.size() != 1) return;
    const Linear index = to_linear(st->indices[0]);
    begins_[st->buffer.get()].insert(index.constant);
    if (updates_itself(*st)) return;
    Sets& sets = sets_[st->buffer.get()];
    if (lane_ && conditional_)
      sets.some_lanes = true;
    else
      sets.all_lanes.push_back(index);
  }
}

bool ScratchLanes::reach_another(const Store& st, const Expr& index, const Ranges& ranges) const {
  const auto begins = begins_.find(st.buffer.get());
  if (begins == begins_.end()) return false;
  const auto next = begins->second.upper_bound(to_linear(st.indices[0]).constant);
  if (next == begins->second.end()) return false;
  const auto* lanes = index.as<Ramp>();
  const auto stride = lanes ? as_int(lanes->stride) : std::nullopt;
  if (!stride || *stride < 0) return true;
  const auto last = interval(lanes->base + Expr(*stride * (index.lanes() - 1)), ranges).high;
  return !last || *last >= *next;
}

bool ScratchLanes::are_unset(const BufferNode& b, const Expr& index, const Expr& mask,
                             const Ranges& ranges) const {
  const auto found = sets_.find(&b);
  if (found == sets_.end()) return false;
  const Sets& sets = found->second;
  if (sets.all_lanes.empty()) return sets.some_lanes;
  // Here row + first + lane is the index, with columns from first + lane on that are off.
  const auto bound = bound_of(mask);
  const auto* lanes = index.as<Ramp>();
  if (!bound || !lanes || !is_one(lanes->stride)) return false;
  Linear start = to_linear(lanes->base);
  start.add(to_linear(bound->first), -1);
  int64_t row = 0;
  for (const LinearTerm& t : start.terms) {
    if (t.coefficient == INT64_MIN) return false;
    row = std::gcd(t.coefficient, row);
  }
  const auto last = interval(bound->first + Expr(index.lanes() - 1), ranges).high;
  if (!last || (row && *last >= row)) return false;
  return std::all_of(sets.all_lanes.begin(), sets.all_lanes.end(), [&](Linear set) {
    set.constant -= start.constant;
    const Interval columns = interval(to_expr(split_row(set, row).second), ranges_);
    return columns.low && *columns.low >= 0 && columns.high && *columns.high < bound->columns;
  });
}

}  // namespace tilewright::passes
