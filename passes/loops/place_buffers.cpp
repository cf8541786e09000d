// Moves each temporary into the innermost loop that holds all its uses, shrinks it to what one
// iteration touches, and makes it local when that is small.
//
// Storage folding, as Halide's and TVM's storage flattening with compact regions: a temporary
// allocated for the whole kernel, of which one iteration of a loop uses 4 x 16 elements, becomes 4
// x 16 elements inside that loop, mostly registers. Regions follow from bounds of the indices over
// the loops inside. Not done: keeping rows from one iteration to the next (a line buffer).
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Use {
  std::vector<const For*> loops;
  std::vector<Expr> indices;
  bool stored = false;
};

// All accesses of one buffer, with the loops around each.
class CollectUses {
 public:
  explicit CollectUses(const BufferNode* buffer) : buffer_(buffer) {}
  std::vector<Use> uses;
  void visit(const Stmt& s) {
    if (const auto* f = s.as<For>()) {
      visit(f->extent);
      loops_.push_back(f);
      visit(f->body);
      loops_.pop_back();
    } else if (const auto* q = s.as<Seq>()) {
      for (const Stmt& x : q->stmts) visit(x);
    } else if (const auto* a = s.as<Allocate>()) {
      visit(a->body);
    } else if (const auto* i = s.as<If>()) {
      visit(i->condition);
      visit(i->then);
      if (i->otherwise) visit(i->otherwise);
    } else if (const auto* l = s.as<Let>()) {
      visit(l->value);
      visit(l->body);
    } else if (const auto* w = s.as<While>()) {
      visit(w->condition);
      visit(w->body);
      opaque_ |= mentions(w->body);
    } else if (const auto* st = s.as<Store>()) {
      if (st->buffer.get() == buffer_) uses.push_back({loops_, st->indices, true});
      for (const Expr& e : st->indices) visit(e);
      visit(st->value);
    }
  }
  bool opaque() const { return opaque_; }

 private:
  void visit(const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>(); l && l->buffer.get() == buffer_)
        uses.push_back({loops_, l->indices});
    });
  }
  bool mentions(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& x) {
      if (const auto* st = x.as<Store>()) found |= st->buffer.get() == buffer_;
    });
    return found;
  }
  const BufferNode* buffer_;
  std::vector<const For*> loops_;
  bool opaque_ = false;
};

// Dimensions `first` to `last` of a row-major buffer, addressed as one.
struct DimGroup {
  size_t first, last;
};
Expr joined_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape, DimGroup g) {
  Expr index = indices[g.first];
  for (size_t d = g.first + 1; d <= g.last; ++d) index = index * shape[d] + indices[d];
  return g.first == g.last ? index : simplify(index);
}
Expr joined_extent(const std::vector<Expr>& shape, DimGroup g) {
  Expr extent = shape[g.first];
  for (size_t d = g.first + 1; d <= g.last; ++d) extent = extent * shape[d];
  return simplify(extent);
}

// Rewrites the accesses of one buffer to another with joined and shifted indices.
class ShiftAccesses : public Rewriter {
 public:
  ShiftAccesses(Buffer from, Buffer to, const std::vector<DimGroup>& groups,
                const std::vector<Expr>& low)
      : from_(std::move(from)), to_(std::move(to)), groups_(groups), low_(low) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || l->buffer != from_) return Rewriter::rewrite(e);
    return load(to_, shift(l->indices));
  }
  Stmt rewrite(const Stmt& s) override {
    const auto* st = s.as<Store>();
    if (!st || st->buffer != from_) return Rewriter::rewrite(s);
    forget();
    return store(to_, shift(st->indices), rewrite(st->value));
  }

 private:
  std::vector<Expr> shift(const std::vector<Expr>& indices) {
    std::vector<Expr> r;
    for (size_t k = 0; k < groups_.size(); ++k) {
      Expr index = rewrite(joined_index(indices, from_->shape, groups_[k]));
      r.push_back(low_[k] ? index - low_[k] : index);
    }
    return r;
  }
  Buffer from_, to_;
  const std::vector<DimGroup>& groups_;
  const std::vector<Expr>& low_;
};

// Whose dimensions lie in memory in another order: the dimensions in that order instead.
bool is_permuted(const BufferNode& b) {
  return b.layout.size() == b.shape.size() &&
         std::all_of(b.layout.begin(), b.layout.end(),
                     [](const LayoutAxis& a) { return a.divisor == 1 && a.modulus == 0; });
}
class OrderDims : public Rewriter {
 public:
  explicit OrderDims(Buffer from) : from_(std::move(from)) {
    auto to = std::make_shared<BufferNode>(*from_);
    to->shape = ordered(from_->shape);
    to->layout.clear();
    to_ = std::move(to);
  }
  const Buffer& result() const { return to_; }
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || l->buffer != from_) return Rewriter::rewrite(e);
    std::vector<Expr> indices;
    for (const Expr& index : l->indices) indices.push_back(rewrite(index));
    return load(to_, ordered(indices));
  }
  Stmt rewrite(const Stmt& s) override {
    const auto* st = s.as<Store>();
    if (!st || st->buffer != from_) return Rewriter::rewrite(s);
    forget();
    return store(to_, ordered(st->indices), rewrite(st->value));
  }

 private:
  std::vector<Expr> ordered(const std::vector<Expr>& of_dims) const {
    std::vector<Expr> r;
    for (const LayoutAxis& a : from_->layout) r.push_back(of_dims[static_cast<size_t>(a.dim)]);
    return r;
  }
  Buffer from_, to_;
};

// Puts an allocation directly inside a loop.
class Insert : public Rewriter {
 public:
  Insert(const For* at, Buffer buffer) : at_(at), buffer_(std::move(buffer)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (f == at_ && f) return for_loop(f->var, f->extent, allocate(buffer_, f->body), f->loop_kind);
    return Rewriter::rewrite(s);
  }

 private:
  const For* at_;
  Buffer buffer_;
};

// The extent that one iteration touches, from the loops inside; the lowest index goes to `low`.
bool find_region(const std::vector<Use>& uses, size_t depth, const BufferNode& buffer, DimGroup g,
                 Expr& low, Expr& extent) {
  Expr high;
  for (const Use& u : uses) {
    Ranges inner;
    for (size_t i = depth; i < u.loops.size(); ++i) inner.set(u.loops[i]->var, u.loops[i]->extent);
    const Expr index = joined_index(u.indices, buffer.shape, g);
    bool reads_memory = false;
    for_each_expr(index, [&](const Expr& x) { reads_memory |= x.kind() == NodeKind::kLoad; });
    if (reads_memory) return false;
    Expr l = lower_bound(index, inner), h = upper_bound(index, inner);
    if (!l || !h) return false;
    if (!low) {
      low = l;
      high = h;
      continue;
    }
    if (can_prove(l <= low))
      low = l;
    else if (!can_prove(low <= l))
      return false;
    if (can_prove(high <= h))
      high = h;
    else if (!can_prove(h <= high))
      return false;
  }
  extent = simplify(high - low + Expr(1));
  return as_int(extent).has_value();
}

// Bounds of quotients are rough: a region beyond the dimension itself and a vector's overrun says
// nothing.
bool worth_shrinking(int64_t region, const Expr& dimension) {
  constexpr int64_t kOverrun = 256, kMostOfUnknown = 4096;
  auto n = as_int(dimension);
  return region <= (n ? *n + kOverrun : kMostOfUnknown);
}

// Innermost allocations first: placing one may move another's uses.
class PlaceBuffers : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    const auto* a = s.as<Allocate>();
    if (!a) return Rewriter::rewrite(s);
    Stmt body = rewrite(a->body);
    Buffer buffer = a->buffer;
    if (is_permuted(*buffer)) {
      OrderDims order(buffer);
      body = order.rewrite(body);
      buffer = order.result();
    }
    CollectUses collect(buffer.get());
    collect.visit(body);
    if (collect.uses.empty()) return body;
    if (collect.opaque()) return allocate(buffer, body);
    std::vector<const For*> common = collect.uses[0].loops;
    for (const Use& u : collect.uses) {
      size_t n = 0;
      while (n < common.size() && n < u.loops.size() && common[n] == u.loops[n]) ++n;
      common.resize(n);
    }
    // Not into loops that become vectors or copies.
    size_t depth = 0;
    while (depth < common.size() && (common[depth]->loop_kind == LoopKind::kSerial ||
                                     common[depth]->loop_kind == LoopKind::kParallel))
      ++depth;
    return place(buffer, body, collect.uses, common, depth);
  }

 private:
  // What one iteration touches of a group of dimensions; false when that is not known or not less.
  struct Region {
    Expr low, extent;
  };
  static bool shrinks(const BufferNode& b, const std::vector<Use>& uses, size_t depth, DimGroup g,
                      Region& r) {
    r = {};
    return find_region(uses, depth, b, g, r.low, r.extent) &&
           worth_shrinking(*as_int(r.extent), joined_extent(b.shape, g));
  }
  // Does one iteration touch less than all of a dimension? A remainder goes through all of it.
  static bool takes_part(const BufferNode& b, const std::vector<Use>& uses, size_t depth,
                         size_t d) {
    Region r;
    const auto all = as_int(b.shape[d]);
    return shrinks(b, uses, depth, {d, d}, r) && !(all && *as_int(r.extent) >= *all);
  }
  static bool has_quotients(const Expr& e) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      const auto* b = x.as<Binary>();
      found |= b && (b->op == BinaryOp::kFloorDiv || b->op == BinaryOp::kFloorMod);
    });
    return found;
  }
  // The places that a store walks over, those of lanes that are off too, as steps and how often each is taken;
  // nothing where they do not differ. Only then may they lie in one row: what is stored by rows with a tail
  // needs room behind each.
  using Walk = std::vector<std::pair<int64_t, int64_t>>;
  static std::optional<Walk> walk_apart(const Use& u, const Expr& index, size_t depth) {
    const Linear l = to_linear(index);
    Walk steps;
    for (size_t i = depth; i < u.loops.size(); ++i) {
      const auto step = l.coefficient_of(u.loops[i]->var);
      const auto times = as_int(u.loops[i]->extent);
      if (!step || !step->is_constant() || !times) return std::nullopt;
      if (step->constant != 0) steps.push_back({std::abs(step->constant), *times});
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = 0;
    for (const auto& [step, times] : steps) {
      if (step <= reach) return std::nullopt;
      reach += step * (times - 1);
    }
    return steps;
  }
  static Expr start_of(const Use& u, const Expr& index, size_t depth) {
    VarMap first;
    for (size_t i = depth; i < u.loops.size(); ++i) first[u.loops[i]->var.get()] = Expr(0);
    return simplify(substitute(index, first));
  }
  // Do all stores walk over the same places, which lie apart?
  static bool stores_lie_apart(const BufferNode& b, const std::vector<Use>& uses, size_t depth,
                               DimGroup g) {
    std::optional<Walk> all;
    Expr start;
    for (const Use& u : uses) {
      if (!u.stored) continue;
      const Expr index = joined_index(u.indices, b.shape, g);
      const auto walk = walk_apart(u, index, depth);
      const Expr first = start_of(u, index, depth);
      if (!walk || (all && (*all != *walk || !can_prove_equal(start, first)))) return false;
      all = walk;
      start = first;
    }
    return all.has_value();
  }
  // The last of the dimensions from d on whose joined index is no quotient where that of d is one;
  // d itself where there are none.
  static size_t joined_to(const BufferNode& b, const std::vector<Use>& uses, size_t depth,
                          size_t d) {
    auto divided = [&](DimGroup g) {
      return std::any_of(uses.begin(), uses.end(), [&](const Use& u) {
        return has_quotients(joined_index(u.indices, b.shape, g));
      });
    };
    if (!divided({d, d})) return d;
    for (size_t last = d + 1; last < b.shape.size() && !takes_part(b, uses, depth, last); ++last) {
      const DimGroup group{d, last};
      Region r;
      if (!divided(group) && stores_lie_apart(b, uses, depth, group) &&
          shrinks(b, uses, depth, group, r))
        return last;
    }
    return d;
  }
  // Rows of joined axes have quotients and remainders as indices: only together these say which
  // part of the dimensions they touch.
  static std::vector<DimGroup> group(const BufferNode& b, const std::vector<Use>& uses,
                                     size_t depth) {
    std::vector<DimGroup> groups;
    const size_t rank = b.shape.size();
    for (size_t d = 0; d < rank; d = groups.back().last + 1) {
      groups.push_back({d, b.layout.empty() ? joined_to(b, uses, depth, d) : d});
      Region r;
      if (!b.layout.empty() || groups.back().last > d || shrinks(b, uses, depth, {d, d}, r))
        continue;
      for (size_t last = d + 1; last < rank && groups.back().last == d; ++last)
        if (!takes_part(b, uses, depth, last) && shrinks(b, uses, depth, {d, last}, r))
          groups.back().last = last;
    }
    return groups;
  }
  // Do iterations of a parallel loop inside use the same elements? They may be different threads'.
  static bool is_shared(const std::vector<Use>& uses, size_t depth) {
    for (const Use& u : uses)
      for (size_t i = depth; i < u.loops.size(); ++i)
        if (u.loops[i]->loop_kind == LoopKind::kParallel) return true;
    return false;
  }
  Stmt place(const Buffer& buffer, const Stmt& body, const std::vector<Use>& uses,
             const std::vector<const For*>& common, size_t depth) {
    auto moved = std::make_shared<BufferNode>(*buffer);
    moved->shape.clear();
    const std::vector<DimGroup> groups = group(*buffer, uses, depth);
    std::vector<Expr> low;
    // Lanes that are off are written to local buffers all the same, so these must hold whole tiles.
    bool constant_size = true, covered = true;
    int64_t elements = 1;
    for (const DimGroup& g : groups) {
      Region r;
      const bool shrunk = shrinks(*buffer, uses, depth, g, r);
      covered &= shrunk;
      low.push_back(!shrunk || is_zero(r.low) ? Expr() : r.low);
      moved->shape.push_back(shrunk ? r.extent : joined_extent(buffer->shape, g));
      auto n = as_int(moved->shape.back());
      constant_size &= n.has_value();
      if (n && elements < kMostLocalBytes * 64) elements *= *n;
    }
    // A padded layout stays valid only for the whole buffer.
    for (const LayoutAxis& x : buffer->layout)
      if (x.divisor != 1 || x.modulus) return allocate(buffer, body);
    if (covered && constant_size && !is_shared(uses, depth) &&
        elements * byte_size(moved->dtype) <= kMostLocalBytes)
      moved->scope = Scope::kLocal;
    ShiftAccesses shift(buffer, moved, groups, low);
    if (depth == 0) return allocate(moved, shift.rewrite(body));
    return shift.rewrite(Insert(common[depth - 1], moved).rewrite(body));
  }
};

}  // namespace

Stmt place_buffers(const Stmt& s) { return PlaceBuffers().rewrite(s); }

}  // namespace tilewright::passes
