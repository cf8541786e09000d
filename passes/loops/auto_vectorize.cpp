// Auto-vectorisation, as of LLVM's loop vectoriser, of the loops that operators write within blocks
// (sorting, scattering, choosing boxes): no schedule reaches these. The loop is strip-mined as the
// primitive `split` does, so that tails, masks and horizontal reductions are those of scheduled
// loops:
//
//    for v in 0..n                  for o in 0..ceil(n / 16)
//      C[v] = A[v]           ->       for l in 0..16 vectorized
//                                       if o * 16 + l < n: C[o * 16 + l] = A[o * 16 + l]
//
// A reduction into one element gets a vector of partial results, joined after the loop. Where the
// innermost loop must stay serial, as a sum of floats, the loop around it becomes vectors if it can
// (outer-loop vectorisation). On blocks, whose accesses have an index per dimension: that is what
// proves that iterations stay apart.
#include <algorithm>
#include <unordered_map>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/vector_width.h"
#include "passes/loops/independent_lanes.h"
#include "passes/loops/lanes.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What a loop's body becomes for the lanes of one vector.
class GiveLanes : public Rewriter {
 public:
  struct Fold {
    const Store* store;
    LaneReduction reduction;
    Buffer partial;  // one element per lane
  };
  GiveLanes(const For& loop, const LanePlan& plan, int lanes)
      : loop_(loop), plan_(plan), lanes_(lanes), chunk_(loop.var.name() + "_chunk") {
    for (const Buffer& b : plan.privates) {
      std::vector<Expr> shape = b->shape;
      shape.push_back(lanes);
      widened_[b.get()] = make_buffer(b->name, b->dtype, std::move(shape), Scope::kLocal);
    }
    for (const Store* st : plan.folds)
      folds_.push_back({st, *find_lane_reduction(*st),
                        make_buffer("partial", st->buffer->dtype, {Expr(lanes)}, Scope::kLocal)});
  }
  const std::vector<Fold>& folds() const { return folds_; }

  // The loop over vectors, of n iterations of the loop in all.
  Stmt run(const Expr& n) {
    n_ = n;
    return for_loop(chunk_, simplify(ceildiv(n, lanes_)),
                    plan_.apart ? each_apart(loop_.body) : in_lanes(loop_.body));
  }

 private:
  // Lanes are the innermost loops, one around each store: what iterations have for themselves is
  // shared by several of these (loop fission and interchange).
  Stmt each_apart(const Stmt& s) {
    if (const auto* q = s.as<Seq>()) {
      std::vector<Stmt> all;
      for (const Stmt& x : q->stmts) all.push_back(each_apart(x));
      return seq(std::move(all));
    }
    if (const auto* f = s.as<For>()) return for_loop(f->var, f->extent, each_apart(f->body));
    if (const auto* a = s.as<Allocate>())
      return allocate(widened_.at(a->buffer.get()), each_apart(a->body));
    TW_CHECK(s.as<Store>());
    return in_lanes(s);
  }
  Stmt in_lanes(const Stmt& s) {
    lane_ = Var(loop_.var.name() + "_lane");
    const Expr at = chunk_ * Expr(lanes_) + lane_;
    Stmt body = substitute(rewrite(s), {{loop_.var.get(), at}});
    if (!is_multiple(n_, lanes_)) body = if_then(at < n_, body);
    return for_loop(lane_, lanes_, body, LoopKind::kVectorized);
  }

  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    const auto it = l ? widened_.find(l->buffer.get()) : widened_.end();
    return it == widened_.end() ? Rewriter::rewrite(e) : load(it->second, with_lane(l->indices));
  }
  Stmt rewrite(const Stmt& s) override {
    forget();
    const auto* st = s.as<Store>();
    if (!st) return Rewriter::rewrite(s);
    for (const Fold& f : folds_)
      if (f.store == st)
        return store(f.partial, {lane_},
                     binary(f.reduction.op, load(f.partial, {lane_}), rewrite(f.reduction.term)));
    const auto it = widened_.find(st->buffer.get());
    if (it == widened_.end()) return Rewriter::rewrite(s);
    return store(it->second, with_lane(st->indices), rewrite(st->value));
  }
  std::vector<Expr> with_lane(std::vector<Expr> indices) {
    for (Expr& i : indices) i = rewrite(i);
    indices.push_back(lane_);
    return indices;
  }

  const For& loop_;
  const LanePlan& plan_;
  const int lanes_;
  const Var chunk_;
  Var lane_;
  Expr n_;
  std::unordered_map<const BufferNode*, Buffer> widened_;
  std::vector<Fold> folds_;
};

bool contains(const Stmt& s, NodeKind kind) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& x) { found |= x.kind() == kind; });
  return found;
}

class AutoVectorize : public Rewriter {
 public:
  explicit AutoVectorize(const MachineDescription& machine) : machine_(machine) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override { return e; }
  Stmt rewrite(const Stmt& s) override {
    if (s.kind() == NodeKind::kBlock) {
      ++blocks_;
      Stmt inside = Rewriter::rewrite(s);
      --blocks_;
      return inside;
    }
    const auto* f = s.as<For>();
    // Loops around blocks are those of schedules.
    if (!f || !blocks_ || contains(f->body, NodeKind::kBlock)) return Rewriter::rewrite(s);
    Stmt inner = Rewriter::rewrite(s);
    Stmt vectors = inner.same_as(s) ? vectorize(*f) : nullptr;
    return vectors ? vectors : inner;
  }

 private:
  // null where the loop stays as it is.
  Stmt vectorize(const For& f) const {
    const auto plan = plan_lanes(f);
    if (!plan) return nullptr;
    Expr n = simplify(f.extent);
    const int lanes = width(*plan, n);
    if (lanes < 2 || (plan->moves_locals && !is_multiple(n, lanes))) return nullptr;
    bool reads_memory = false;
    for_each_expr(n, [&](const Expr& e) { reads_memory |= e.kind() == NodeKind::kLoad; });
    if (!reads_memory) return strip_mine(f, *plan, n, lanes);
    Var times("times");  // read once: conditions name it
    return let(times, n, strip_mine(f, *plan, times, lanes));
  }
  // 1 where vectors would be mostly empty.
  int width(const LanePlan& plan, const Expr& n) const {
    const int lanes = machine_.lanes(plan.element_bytes);
    const auto known = as_int(n);
    if (!known) return lanes;
    return *known < kFewestLanes ? 1 : static_cast<int>(fitting_lanes(lanes, *known));
  }
  static Stmt strip_mine(const For& f, const LanePlan& plan, const Expr& n, int lanes) {
    GiveLanes give(f, plan, lanes);
    Stmt loops = give.run(n);
    for (const GiveLanes::Fold& fold : give.folds()) loops = around(loops, fold, lanes);
    // A place that nothing is folded into may not exist.
    return plan.folds.empty() || as_int(n) ? loops : if_then(Expr(0) < n, loops);
  }
  // Partial results that start as what changes nothing, and come to the place in the end.
  static Stmt around(const Stmt& loops, const GiveLanes::Fold& fold, int lanes) {
    const auto& [op, term, neutral] = fold.reduction;
    const Store& st = *fold.store;
    const Var first("lane"), last("lane");
    Stmt clear =
        for_loop(first, lanes, store(fold.partial, {first}, neutral), LoopKind::kVectorized);
    Stmt join = for_loop(last, lanes,
                         store(st.buffer, st.indices,
                               binary(op, load(st.buffer, st.indices), load(fold.partial, {last}))),
                         LoopKind::kVectorized);
    return allocate(fold.partial, seq({clear, loops, join}));
  }

  const MachineDescription& machine_;
  int blocks_ = 0;  // around the statement
};

}  // namespace

Stmt auto_vectorize(const Stmt& s, const MachineDescription& machine) {
  return AutoVectorize(machine).rewrite(s);
}

}  // namespace tilewright::passes
