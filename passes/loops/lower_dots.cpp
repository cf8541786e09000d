// Loops of kind `dot` become Dot expressions; where the form does not fit they are unrolled.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

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
    if (!f || f->loop_kind != LoopKind::kDot) return Rewriter::rewrite(s);
    if (const auto* st = f->body.as<Store>())
      if (Stmt dot = as_dot(*f, *st)) return dot;
    return for_loop(f->var, f->extent, f->body, LoopKind::kUnrolled);
  }

 private:
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
        !is_always_read(*a) || !is_always_read(*b) || a->indices[0].lanes() != 1)
      return nullptr;
    const int each = dot_terms(a->buffer->dtype), terms = each * lanes;
    const auto* along = b->indices[0].as<Ramp>();
    if (as_int(f.extent) != each || !along || as_int(along->stride) != each ||
        along->type.lanes != lanes)
      return nullptr;
    Expr from_a = first_of(a->indices[0], f.var), from_b = first_of(along->base, f.var);
    if (!from_a || !from_b) return nullptr;
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
  static bool is_same_load(const Expr& e, const Load& other) {
    const auto* l = e.as<Load>();
    return l && l->buffer == other.buffer && same_expr(l->indices[0], other.indices[0]);
  }
  static bool is_always_read(const Load& l) { return !l.mask || is_one(l.mask); }
};

}  // namespace

Stmt lower_dots(const Stmt& s) { return LowerDots().rewrite(s); }

}  // namespace tilewright::passes
