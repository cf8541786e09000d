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

// Does a condition, or a part of it that holds with it, say that `e` is less than n?
bool keeps_below(const Expr& condition, const Expr& e, int64_t n) {
  const auto* b = condition.as<Binary>();
  if (b && b->op == BinaryOp::kAnd) return keeps_below(b->a, e, n) || keeps_below(b->b, e, n);
  return b && b->op == BinaryOp::kLt && as_int(b->b).value_or(n + 1) <= n &&
         can_prove_equal(b->a, e);
}

// Is something, whatever it is, said to be less than n?
bool has_bound(const Expr& condition, int64_t n) {
  const auto* b = condition.as<Binary>();
  if (b && b->op == BinaryOp::kAnd) return has_bound(b->a, n) || has_bound(b->b, n);
  return b && b->op == BinaryOp::kLt && as_int(b->b) == n;
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
    const std::vector<Expr> around = conditions_;
    if (f->loop_kind == LoopKind::kVectorized) {
      lane_ = f->var;
      conditions_.clear();
    }
    visit(f->body);
    lane_ = saved;
    conditions_ = around;
  } else if (const auto* i = s.as<If>()) {
    const bool on_lane = lane_ && uses_var(i->condition, lane_);
    if (on_lane) conditions_.push_back(i->condition);
    visit(i->then);
    if (on_lane) conditions_.pop_back();
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
    if (!updates_itself(*st)) sets_[st->buffer.get()].push_back({index, conditions_});
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

// Do all lanes at `index` stay within the rows, of whatever length, that the loops around the set go by? The places are
// digits then, of which none runs over into the next one.
bool ScratchLanes::stays_in_rows_of(const Set& set, const Expr& index, const Ranges& ranges) const {
  const auto* lanes = index.as<Ramp>();
  const auto stride = lanes ? as_int(lanes->stride) : std::nullopt;
  if (!stride) return index.lanes() == 1;
  const Linear start = to_linear(lanes->base);
  return std::all_of(set.index.terms.begin(), set.index.terms.end(), [&](const LinearTerm& row) {
    const int64_t length = row.coefficient;
    if (length <= 0) return false;
    Linear within;
    within.constant = (start.constant % length + length) % length;
    for (const LinearTerm& t : start.terms)
      if (t.coefficient % length != 0) within.add(t.factors, t.coefficient);
    const Interval range = interval(to_expr(within), ranges);
    const int64_t reach = *stride % length != 0 ? *stride * (index.lanes() - 1) : 0;
    return range.low && *range.low >= 0 && range.high && *range.high + reach < length;
  });
}

bool ScratchLanes::are_unset(const BufferNode& b, const Expr& index, const Expr& mask,
                             const Ranges& ranges) const {
  const auto found = sets_.find(&b);
  if (found == sets_.end()) return false;
  const std::vector<Set>& sets = found->second;
  // Here row + first + lane is the index, with columns from first + lane on that are off.
  const auto bound = bound_of(mask);
  const auto as_masked = [&](const Set& set) {
    const bool alike = !bound || std::any_of(set.conditions.begin(), set.conditions.end(),
                                             [&](const Expr& condition) {
                                               return has_bound(condition, bound->columns);
                                             });
    return !set.conditions.empty() && alike && stays_in_rows_of(set, index, ranges);
  };
  if (std::all_of(sets.begin(), sets.end(), as_masked)) return true;
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
  return std::all_of(sets.begin(), sets.end(), [&](const Set& set) {
    return stays_below(set, row, start.constant, bound->columns);
  });
}

// Are the columns that are set, of rows that begin at `start`, from 0 to below `columns`? By their range, or because a
// condition says so.
bool ScratchLanes::stays_below(const Set& set, int64_t row, int64_t start, int64_t columns) const {
  Linear column = set.index;
  column.constant -= start;
  column = split_row(column, row).second;
  const Interval range = interval(to_expr(column), ranges_);
  if (!range.low || *range.low < 0) return false;
  if (range.high && *range.high < columns) return true;
  return range.high && (row == 0 || *range.high < row) &&
         std::any_of(set.conditions.begin(), set.conditions.end(), [&](const Expr& condition) {
           return keeps_below(condition, to_expr(column), columns);
         });
}

}  // namespace tilewright::passes
