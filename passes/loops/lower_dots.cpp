// Loops of kind `dot` become Dot expressions, or unrolled loops where the form does not fit; around
// other loops they become DotTiles, or else serial loops.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The match is on the form that tensorize and vectorize leave behind (pattern matching as an
// instruction selector does it):
//
//    for q in 0..4 dot: sum[v] += i32(a[x + q]) * i32(b[ramp(y + q, 4, 8)])   v = ramp(j, 1, 8)
//    sum[v] = dot(sum[v], broadcast(a[ramp(x, 1, 4)], 32), b[ramp(y, 1, 32)])
//
// What does not match stays correct: the loop is unrolled and computes the same sum.
// What stands under a cast to the type of sums, under a broadcast or not.
const Load* widened_load(const Expr& e, DType sum) {
  const auto* b = e.as<Broadcast>();
  const auto* c = (b ? b->value : e).as<Cast>();
  if (!c || c->type.dtype != sum) return nullptr;
  const auto* inner = c->value.as<Broadcast>();
  return (inner ? inner->value : c->value).as<Load>();
}
// May b stand beside a in a Dot? Bytes beside i16 are widened.
bool fit(const Load& a, const Load& b) {
  const DType wanted = dot_partner(a.buffer->dtype), given = b.buffer->dtype;
  return given == wanted || (given == DType::kInt8 && wanted == DType::kInt16);
}

class LowerDots : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (f && f->loop_kind != LoopKind::kDot) ranges_.set(f->var, f->extent);
    if (f && f->loop_kind == LoopKind::kUnrolled && holds_tile(f->body)) return each_apart(*f);
    if (!f || f->loop_kind != LoopKind::kDot) return Rewriter::rewrite(s);
    if (is_tile(*f)) return rewrite_tile(*f);
    if (const auto* st = f->body.as<Store>())
      if (Stmt dot = as_dot(*f, *st)) return dot;
    return for_loop(f->var, f->extent, f->body, LoopKind::kUnrolled);
  }

 private:
  // A dot loop around others, of which the innermost is one, too.
  static bool is_tile(const For& f) { return f.loop_kind == LoopKind::kDot && holds_dot(f.body); }
  static bool holds_dot(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& x) {
      if (const auto* f = x.as<For>()) found |= f->loop_kind == LoopKind::kDot;
    });
    return found;
  }
  static bool holds_tile(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& x) {
      if (const auto* f = x.as<For>()) found |= is_tile(*f);
    });
    return found;
  }
  // Tiles of one loop differ: conditions that hold for all rows of one may not for another's.
  Stmt each_apart(const For& f) {
    const auto n = as_int(f.extent);
    if (!n) return Rewriter::rewrite(for_loop(f.var, f.extent, f.body));
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *n; ++i) {
      const Stmt copy = clone_with_fresh_names(substitute(f.body, {{f.var.get(), Expr(i)}}),
                                               "_" + std::to_string(i));
      copies.push_back(rewrite(simplify_loops(copy, ranges_)));
    }
    return seq(std::move(copies));
  }
  // A condition that holds for all iterations of the loops inside goes around them.
  static Stmt hoist_condition(const Stmt& s) {
    const auto* f = s.as<For>();
    if (!f) return s;
    const Stmt body = hoist_condition(f->body);
    const auto* i = body.as<If>();
    if (i && !i->otherwise && !uses_var(i->condition, f->var))
      return if_then(i->condition, for_loop(f->var, f->extent, i->then, f->loop_kind));
    return body.same_as(f->body) ? s : for_loop(f->var, f->extent, body, f->loop_kind);
  }
  // The rows below a constant limit: `row + c < limit`.
  static std::optional<int64_t> rows_below(const Expr& condition, const Var& row, int64_t rows) {
    const auto* c = condition.as<Binary>();
    if (!c || c->op != BinaryOp::kLt || c->a.dtype() != DType::kInt64) return std::nullopt;
    const Linear left = to_linear(c->a - c->b), rest = left.without(row);
    const auto by_row = left.coefficient_of(row);
    if (!by_row || !by_row->is_constant() || by_row->constant != 1 || !rest.is_constant())
      return std::nullopt;
    return std::clamp<int64_t>(-rest.constant, 0, rows);
  }
  Stmt rewrite_tile(const For& f) {
    ranges_.set(f.var, f.extent);
    Stmt inside = hoist_condition(f.body);
    auto rows = as_int(f.extent);
    if (const auto* i = inside.as<If>(); i && rows)
      if (const auto some = rows_below(i->condition, f.var, *rows)) {
        inside = i->then;
        rows = some;
      }
    if (rows == 0) return seq({});
    // Tiles of fewer rows would take registers from the others: their sizes are the kernel's.
    const bool whole = rows && rows == as_int(f.extent);
    const Stmt body = rewrite(inside);
    const auto* groups = body.as<For>();
    const auto* st = groups ? groups->body.as<Store>() : nullptr;
    if (whole && st)
      if (Stmt tile = as_dot_tile(f.var, *rows, *groups, *st)) return tile;
    return for_loop(f.var, rows ? Expr(*rows) : f.extent, body);
  }
  // sum[c] = dot(sum[c], a[t], b[t]) with c a row of sums, in loops over rows and groups of terms.
  Stmt as_dot_tile(const Var& row, int64_t rows, const For& groups, const Store& st) const {
    const auto* d = st.value.as<Dot>();
    const auto count = as_int(groups.extent);
    if (!d || !count || st.mask) return nullptr;
    const auto* repeated = d->a.as<Broadcast>();
    const auto *a = repeated ? repeated->value.as<Load>() : nullptr, *b = d->b.as<Load>(),
               *sum = d->sum.as<Load>();
    if (!a || !b || !sum || !is_same_load(d->sum, *sum) || sum->buffer != st.buffer ||
        !same_expr(sum->indices[0], st.indices[0]) ||
        b->buffer->dtype != dot_partner(a->buffer->dtype))
      return nullptr;
    DotTile tile;
    tile.rows = rows;
    tile.columns = st.indices[0].lanes();
    tile.groups = *count;
    if (tile.rows > tile.kMostRows || tile.columns > tile.kMostColumns ||
        tile.groups > tile.kMostGroups)
      return nullptr;
    const auto steps = [&](const Load& l) {
      return steps_of(first_lane(l.indices[0]), row, groups.var);
    };
    const auto of_sum = steps(*sum), of_a = steps(*a), of_b = steps(*b);
    if (!of_sum || !of_a || !of_b || !is_zero(of_sum->by_group) || !is_zero(of_b->by_row) ||
        as_int(of_a->by_group) != dot_terms(a->buffer->dtype))
      return nullptr;
    tile.sum = {st.buffer, of_sum->first, of_sum->by_row};
    tile.a = {a->buffer, of_a->first, of_a->by_row};
    tile.b = {b->buffer, of_b->first, of_b->by_group};
    return dot_tile(std::move(tile));
  }
  static Expr first_lane(const Expr& index) {
    const auto* r = index.as<Ramp>();
    return !r ? index : is_one(r->stride) ? r->base : Expr();
  }
  // An address as first + row * by_row + group * by_group.
  struct Steps {
    Expr first, by_row, by_group;
  };
  static std::optional<Steps> steps_of(const Expr& index, const Var& row, const Var& group) {
    if (!index) return std::nullopt;
    const Linear l = to_linear(index);
    const auto by_row = l.coefficient_of(row), by_group = l.coefficient_of(group);
    if (!by_row || !by_group) return std::nullopt;
    const Steps s{to_expr(l.without(row).without(group)), to_expr(*by_row), to_expr(*by_group)};
    for (const Expr& e : {s.first, s.by_row, s.by_group})
      if (uses_var(e, row) || uses_var(e, group)) return std::nullopt;
    return s;
  }

  // Address of the loop's first element when it goes up by one with each iteration.
  Expr first_of(const Expr& index, const Var& v) const {
    const Linear l = to_linear(index);
    auto step = l.coefficient_of(v);
    if (!step || !step->is_constant() || step->constant != 1) return nullptr;
    Expr first = to_expr(l.without(v));
    return uses_var(first, v) ? Expr() : first;
  }
  // sum[i] = sum[i] + i32(a[x + q]) * i32(b[y + terms * lane + q]), q the loop's variable.
  Stmt as_dot(const For& f, const Store& st) const {
    const int lanes = st.indices[0].lanes();
    if (st.buffer->scope != Scope::kLocal || st.mask) return nullptr;
    const DType type = st.buffer->dtype;
    // Lanes of a local tile beyond the results are scratch.
    const auto* choice = st.value.as<Select>();
    if (choice && !bounds_lanes(choice->condition, f.var)) return nullptr;
    const auto* update = (choice ? choice->a : st.value).as<Binary>();
    if (!update || update->op != BinaryOp::kAdd) return nullptr;
    const auto* sum = update->a.as<Load>();
    const auto* product = update->b.as<Binary>();
    if (!sum || sum->buffer != st.buffer || sum->mask || !product ||
        product->op != BinaryOp::kMul || !same_expr(sum->indices[0], st.indices[0]) ||
        (choice && !is_same_load(choice->b, *sum)))
      return nullptr;
    const Load *a = widened_load(product->a, type), *b = widened_load(product->b, type);
    if (!a || !b) return nullptr;
    if (a->indices[0].lanes() != 1) std::swap(a, b);
    if (!dot_terms(a->buffer->dtype) || type != dot_sum(a->buffer->dtype) || !fit(*a, *b) ||
        !is_always_read(*a) || a->indices[0].lanes() != 1)
      return nullptr;
    const int each = dot_terms(a->buffer->dtype), terms = each * lanes;
    const auto* along = b->indices[0].as<Ramp>();
    if (as_int(f.extent) != each || !along || as_int(along->stride) != each ||
        along->type.lanes != lanes)
      return nullptr;
    Expr from_a = first_of(a->indices[0], f.var), from_b = first_of(along->base, f.var);
    if (!from_a || !from_b) return nullptr;
    if (!is_always_read(*b)) {
      if (!bounds_lanes(b->mask, f.var) || (choice && !same_expr(b->mask, choice->condition)))
        return nullptr;
      from_b = inside(*b->buffer, from_b, terms);
      if (!from_b) return nullptr;
    }
    return store(
        st.buffer, st.indices,
        dot(load(st.buffer, st.indices),
            broadcast(load(a->buffer, {ramp(from_a, Expr(1), each)}), terms),
            cast(dot_partner(a->buffer->dtype), load(b->buffer, {ramp(from_b, Expr(1), terms)}))));
  }
  // lane < bound, for all terms alike.
  static bool bounds_lanes(const Expr& condition, const Var& term) {
    const auto* c = condition.as<Binary>();
    return c && c->op == BinaryOp::kLt && c->a.kind() == NodeKind::kRamp &&
           c->b.kind() == NodeKind::kBroadcast && !uses_var(condition, term);
  }
  // Where `terms` elements from this index on may lie beyond the end, for results that nobody
  // reads, others are as good.
  static Expr inside(const BufferNode& b, const Expr& index, int terms) {
    int64_t least = 1;  // elements of any buffer of this layout
    for (const LayoutAxis& a : b.layout) least *= a.modulus ? a.extent() : 1;
    const Expr size = simplify(storage_elements(b));
    if (as_int(size).value_or(least) < terms) return nullptr;
    return min(index, simplify(size - Expr(terms)));
  }
  static bool is_same_load(const Expr& e, const Load& other) {
    const auto* l = e.as<Load>();
    return l && l->buffer == other.buffer && same_expr(l->indices[0], other.indices[0]);
  }
  static bool is_always_read(const Load& l) { return !l.mask || is_one(l.mask); }

  Ranges ranges_;
};

}  // namespace

Stmt lower_dots(const Stmt& s) { return LowerDots().rewrite(s); }

}  // namespace tilewright::passes
