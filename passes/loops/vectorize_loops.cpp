// Vectorisation by widening, as Halide's VectorizeLoops: the loop's variable becomes ramp(0, 1,
// lanes), and everything that depends on it a vector; affine indices become ramps, so that
// contiguous accesses are seen as such. Conditions become masks (if-conversion). Legality was
// checked by the schedule, except for stores of all lanes into one element: these are combined if
// they reduce, and else the loop stays serial.
#include <unordered_set>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/lanes.h"
#include "passes/loops/loop_passes.h"
#include "passes/loops/scratch_lanes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Replaces one loop variable by the vector 0, 1, ... lanes - 1 throughout a statement.
class Vectorize : public Rewriter {
 public:
  Vectorize(Var var, int lanes, const ScratchLanes& scratch, const Ranges& ranges)
      : var_(std::move(var)), lanes_(lanes), scratch_(scratch), ranges_(ranges) {}
  using Rewriter::rewrite;
  // null where lanes depend on one another: one stores to an element that another reads.
  Stmt run(const Stmt& body) {
    for_each_expr(body, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) read_.insert(l->buffer.get());
    });
    Stmt s = rewrite(body);
    return one_by_one_ ? nullptr : s;
  }

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
    Expr index = rewrite(st.indices[0]);
    if (index.lanes() == 1 && updates_itself(st)) return combine_lanes(st, index);
    Expr value = rewrite(st.value), mask = st.mask ? rewrite(st.mask) : Expr();
    const bool vector = index.lanes() > 1 || value.lanes() > 1;
    one_by_one_ |= index.lanes() == 1 && (mask_ || (vector && read_.count(st.buffer.get())));
    // Lanes beyond the mask of a local tile are scratch: writing them keeps the tile in registers. They are kept,
    // though, where something may be there already: by the mask, or as sums that are what they were.
    const bool is_sum = updates_itself(st),
               is_unset = mask_ && vector && scratch_.are_unset(*st.buffer, index, mask_, ranges_),
               is_tile = st.buffer->scope == Scope::kLocal && (is_sum || is_unset) &&
                         !scratch_.reach_another(st, index, ranges_);
    if (vector && mask_ && !is_tile) mask = both(mask, mask_);
    if (mask_ && is_tile && is_sum && (!is_unset || reads_other_local(st)))
      value = select(mask_, broadcast(value, lanes_), load(st.buffer, {index}));
    if (vector) value = broadcast(value, lanes_);
    if (vector && index.lanes() == 1) index = broadcast(index, lanes_);
    return store(st.buffer, {index}, value,
                 mask && mask.lanes() == 1 && vector ? broadcast(mask, lanes_) : mask,
                 st.store_kind);
  }
  // All lanes update one element: what they bring is combined first; lanes that are off bring what
  // changes nothing.
  Stmt combine_lanes(const Store& st, const Expr& index) {
    const auto reduction = find_lane_reduction(st);
    if (!reduction) {
      one_by_one_ = true;
      return store(st.buffer, {index}, st.value, st.mask, st.store_kind);
    }
    Expr lanes = broadcast(rewrite(reduction->term), lanes_);
    if (mask_) lanes = select(mask_, lanes, broadcast(reduction->neutral, lanes_));
    return store(
        st.buffer, {index},
        binary(reduction->op, load(st.buffer, {index}), reduce_lanes(reduction->op, lanes)));
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
  const ScratchLanes& scratch_;
  Ranges ranges_;  // of the loops around
  Expr mask_;
  std::unordered_set<const BufferNode*> read_;  // in the loop
  bool one_by_one_ = false;
  VarMap vector_lets_;
};

class VectorizeLoops : public Rewriter {
 public:
  explicit VectorizeLoops(const Stmt& s) : scratch_(s) {}
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (f && f->loop_kind != LoopKind::kVectorized) ranges_.set(f->var, f->extent);
    if (!f || f->loop_kind != LoopKind::kVectorized) return Rewriter::rewrite(s);
    if (const auto n = as_int(f->extent))
      if (Stmt vectors = Vectorize(f->var, static_cast<int>(*n), scratch_, ranges_).run(f->body))
        return vectors;
    return for_loop(f->var, f->extent, f->body);
  }

 private:
  const ScratchLanes scratch_;
  Ranges ranges_;
};

}  // namespace

Stmt vectorize_loops(const Stmt& s) { return VectorizeLoops(s).rewrite(s); }

}  // namespace tilewright::passes
