#include <unordered_set>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool updates_itself(const Store& st) {
  bool found = false;
  for_each_expr(st.value, [&](const Expr& x) {
    if (const auto* l = x.as<Load>()) found |= l->buffer == st.buffer;
  });
  return found;
}

// A number for what is loaded from a buffer.
class LoadAs : public Rewriter {
 public:
  LoadAs(const Buffer& buffer, int64_t n) : buffer_(buffer), n_(n) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* load = e.as<Load>();
    return load && load->buffer == buffer_ ? Expr(n_) : Rewriter::rewrite(e);
  }

 private:
  const Buffer buffer_;
  const int64_t n_;
};

// Replaces one loop variable by the vector 0, 1, ... lanes - 1 throughout a statement.
class Vectorize : public Rewriter {
 public:
  // scratch: local buffers whose lanes beyond a condition nobody reads.
  Vectorize(Var var, int lanes, const std::unordered_set<const BufferNode*>& scratch,
            const Ranges& ranges)
      : var_(std::move(var)), lanes_(lanes), scratch_(scratch), ranges_(ranges) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    if (e.same_as(var_)) return ramp(Expr(0), Expr(1), lanes_);
    if (e.kind() == NodeKind::kVar) {
      auto it = vector_lets_.find(e.get());
      return it == vector_lets_.end() ? e : it->second;
    }
    if (e.dtype() == DType::kInt64 && e.lanes() == 1 && e.kind() == NodeKind::kBinary)
      if (Expr affine = as_ramp(e)) return affine;
    if (const auto* l = e.as<Load>()) {
      std::vector<Expr> index{rewrite(l->indices[0])};
      Expr mask = l->mask ? rewrite(l->mask) : Expr();
      if (index[0].lanes() > 1 && mask_ && must_mask(*l, index[0])) mask = both(mask, mask_);
      if (index[0].same_as(l->indices[0]) && mask.same_as(l->mask)) return e;
      return load(l->buffer, index, mask, l->ahead);
    }
    return Rewriter::rewrite(e);
  }

  Stmt rewrite(const Stmt& s) override {
    forget();
    if (const auto* st = s.as<Store>()) return rewrite_store(*st);
    if (const auto* i = s.as<If>()) return rewrite_if(*i);
    if (const auto* l = s.as<Let>()) return rewrite_let(*l);
    if (const auto* f = s.as<For>()) ranges_.set(f->var, f->extent);
    return Rewriter::rewrite(s);
  }

 private:
  // Lanes that are off may be read where they surely exist: no store takes what comes of them.
  // Local tiles are whole vectors.
  bool must_mask(const Load& l, const Expr& index) const {
    if (l.buffer->scope == Scope::kLocal) return false;
    return l.mask || l.buffer->scope == Scope::kWorkspace ||
           !lies_inside(*l.buffer, index, ranges_);
  }
  // Lanes of other local buffers may never have been set.
  static bool reads_other_local(const Store& st) {
    bool found = false;
    for_each_expr(st.value, [&](const Expr& x) {
      if (const auto* l = x.as<Load>())
        found |= l->buffer->scope == Scope::kLocal && l->buffer != st.buffer;
    });
    return found;
  }
  // base + stride * var as a ramp; null when e is not affine in var.
  Expr as_ramp(const Expr& e) {
    if (!uses_var(e, var_)) return nullptr;
    Linear l = to_linear(e);
    auto stride = l.coefficient_of(var_);
    if (!stride) return nullptr;
    Expr base = to_expr(l.without(var_)), step = to_expr(*stride);
    for (const auto& [v, replacement] : vector_lets_) {
      bool used = false;
      for_each_expr(base, [&](const Expr& x) { used |= x.get() == v; });
      for_each_expr(step, [&](const Expr& x) { used |= x.get() == v; });
      if (used) return nullptr;
    }
    if (has_vector_load(base) || has_vector_load(step)) return nullptr;
    return ramp(base, step, lanes_);
  }
  bool has_vector_load(const Expr& e) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) found |= uses_var(l->indices[0], var_);
    });
    return found;
  }
  Expr both(const Expr& a, const Expr& b) {
    if (!a || !b) return a ? a : b;
    return binary(BinaryOp::kAnd, a, b);
  }
  Stmt rewrite_store(const Store& st) {
    Expr index = rewrite(st.indices[0]), value = rewrite(st.value),
         mask = st.mask ? rewrite(st.mask) : Expr();
    if (index.lanes() == 1 && value.lanes() > 1)
      if (Stmt reduced = reduce_over_lanes(st, index, value)) return reduced;
    const bool vector = index.lanes() > 1 || value.lanes() > 1;
    if (vector && mask_ && st.buffer->scope != Scope::kLocal) mask = both(mask, mask_);
    // Lanes beyond the mask of a local tile are scratch: writing them keeps the tile in registers.
    // A sum must keep them, though, where they hold what was there before.
    if (vector && mask_ && st.buffer->scope == Scope::kLocal && updates_itself(st) &&
        (!scratch_.count(st.buffer.get()) || reads_other_local(st))) {
      Expr wide = index.lanes() == 1 ? broadcast(index, lanes_) : index;
      value = select(mask_, broadcast(value, lanes_), load(st.buffer, {wide}));
    }
    if (vector) value = broadcast(value, lanes_);
    if (vector && index.lanes() == 1) index = broadcast(index, lanes_);
    return store(st.buffer, {index}, value,
                 mask && mask.lanes() == 1 && vector ? broadcast(mask, lanes_) : mask,
                 st.store_kind);
  }
  // c = op(c, vector) with one c for all lanes: the lanes are combined first; lanes that are off
  // hold the neutral element.
  Stmt reduce_over_lanes(const Store& st, const Expr& index, const Expr& value) {
    if (st.value.dtype() == DType::kInt64)
      if (Stmt linear = reduce_linear(st, index)) return linear;
    const auto* update = value.as<Binary>();
    if (!update) return nullptr;
    const auto* carried = update->a.as<Broadcast>();
    if (!carried || !carried->value.as<Load>() || carried->value.as<Load>()->buffer != st.buffer)
      return nullptr;
    return combined(st, index, update->op, carried->value, update->b);
  }
  // Simplification multiplies i64 out: c * (x + 3) is c * x + c * 3. What it was follows from the
  // values for c = 0 and c = 1.
  Stmt reduce_linear(const Store& st, const Expr& index) {
    const Expr at_zero = simplify(LoadAs(st.buffer, 0).rewrite(st.value)),
               at_one = simplify(LoadAs(st.buffer, 1).rewrite(st.value));
    const Expr carried = load(st.buffer, {index});
    auto is = [](const Expr& e, int64_t n) { return as_int(simplify(e)) == n; };
    if (is(at_zero, 0) && is(st.value - carried * at_one, 0))
      return combined(st, index, BinaryOp::kMul, carried, rewrite(at_one));
    if (is(st.value - at_zero - carried, 0))
      return combined(st, index, BinaryOp::kAdd, carried, rewrite(at_zero));
    return nullptr;
  }
  Stmt combined(const Store& st, const Expr& index, BinaryOp op, const Expr& carried, Expr lanes) {
    if (lanes.lanes() == 1) lanes = broadcast(lanes, lanes_);
    if (mask_) lanes = select(mask_, lanes, broadcast(neutral_of(op, lanes.dtype()), lanes_));
    return store(st.buffer, {index}, binary(op, carried, reduce_lanes(op, lanes)));
  }
  static Expr neutral_of(BinaryOp op, DType t) {
    switch (op) {
      case BinaryOp::kMul: return constant(1, t);
      case BinaryOp::kMax:
      case BinaryOp::kMaxNumber: return lowest(t);
      case BinaryOp::kMin: return highest(t);
      case BinaryOp::kAnd: return t == DType::kBool ? bool_imm(true) : int_imm(-1, t);
      default: return constant(0, t);
    }
  }
  // The part of a condition that is the same for all lanes stays a branch; the rest becomes a mask.
  Stmt rewrite_if(const If& i) {
    std::vector<Expr> parts;
    split_conjunction(i.condition, parts);
    Expr scalar, vector;
    for (const Expr& p : parts) {
      Expr c = rewrite(p);
      if (c.lanes() == 1)
        scalar = both(scalar, c);
      else
        vector = both(vector, c);
    }
    Expr saved = mask_;
    if (vector) mask_ = both(mask_, vector);
    Stmt body = rewrite(i.then);
    Stmt otherwise;
    if (i.otherwise) {
      TW_CHECK(!scalar || !vector);
      mask_ = saved;
      if (vector) mask_ = both(mask_, unary(UnaryOp::kNot, vector));
      otherwise = rewrite(i.otherwise);
    }
    mask_ = saved;
    if (scalar) return if_then(scalar, body, otherwise);
    return otherwise ? seq({body, otherwise}) : body;
  }
  static void split_conjunction(const Expr& e, std::vector<Expr>& parts) {
    const auto* b = e.as<Binary>();
    if (b && b->op == BinaryOp::kAnd && e.dtype() == DType::kBool) {
      split_conjunction(b->a, parts);
      split_conjunction(b->b, parts);
    } else {
      parts.push_back(e);
    }
  }
  Stmt rewrite_let(const Let& l) {
    Expr value = rewrite(l.value);
    if (value.lanes() == 1) return let(l.var, value, rewrite(l.body));
    Var v(l.var.name(), value.type());
    vector_lets_[l.var.get()] = v;
    return let(v, value, rewrite(l.body));
  }

  Var var_;
  int lanes_;
  const std::unordered_set<const BufferNode*>& scratch_;
  Ranges ranges_;  // of the loops around
  Expr mask_;
  VarMap vector_lets_;
};

// Local buffers whose elements are set, before they are summed up, under a condition on the lane
// alone: what lies beyond it is never read.
class FindScratch {
 public:
  std::unordered_set<const BufferNode*> run(const Stmt& s) {
    visit(s);
    for (const BufferNode* b : whole_) partial_.erase(b);
    return std::move(partial_);
  }

 private:
  void visit(const Stmt& s) {
    if (const auto* f = s.as<For>()) {
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
      if (st->buffer->scope != Scope::kLocal || updates_itself(*st)) return;
      (lane_ && conditional_ ? partial_ : whole_).insert(st->buffer.get());
    }
  }
  Var lane_;
  bool conditional_ = false;
  std::unordered_set<const BufferNode*> partial_, whole_;
};

class VectorizeLoops : public Rewriter {
 public:
  explicit VectorizeLoops(const Stmt& s) : scratch_(FindScratch().run(s)) {}
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (f && f->loop_kind != LoopKind::kVectorized) ranges_.set(f->var, f->extent);
    if (!f || f->loop_kind != LoopKind::kVectorized) return Rewriter::rewrite(s);
    auto n = as_int(f->extent);
    if (!n) return for_loop(f->var, f->extent, f->body);
    return Vectorize(f->var, static_cast<int>(*n), scratch_, ranges_).rewrite(f->body);
  }

 private:
  const std::unordered_set<const BufferNode*> scratch_;
  Ranges ranges_;
};

}  // namespace

Stmt vectorize_loops(const Stmt& s) { return VectorizeLoops(s).rewrite(s); }

}  // namespace tilewright::passes
