// Dependence analysis of one loop, after Allen and Kennedy (Optimizing Compilers for Modern
// Architectures, 2001), for the cases that operators write:
//
//    C[.., v + c] = f(C[.., v + c], A[..])     a store that moves by one element with the loop; what
//                                              else touches C has the same last index, so that no
//                                              iteration touches what another one does
//    c[p] = op(c[p], f(A[..]))                 a reduction into a place that stays, by an operation
//                                              whose grouping changes no bit
//    s = 0; for k: s = s + f(..); C[.., v] = s the same with a serial loop inside, whose extent is
//                                              the same for all iterations, and a scalar that each
//                                              iteration has for itself
//
// Different buffers never alias. All else depends, as far as this file knows.
#include "passes/loops/independent_lanes.h"

#include <algorithm>
#include <unordered_set>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/lanes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Access {
  Buffer buffer;
  std::vector<Expr> indices;
  const Store* store = nullptr;  // null: a load
};

// Bytes of all that iterations may have for themselves: a few scalars, not arrays.
constexpr int64_t kMostPrivateBytes = 64;

// One walk over the body: what it touches and binds.
class Body {
 public:
  explicit Body(const Stmt& s) { visit(s); }
  bool plain() const { return plain_; }
  bool has_loops() const { return !extents.empty(); }
  bool has_lets() const { return !lets_.empty(); }
  bool writes(const Buffer& b) const { return written_.count(b.get()) > 0; }
  bool is_private(const Buffer& b) const { return private_.count(b.get()) > 0; }
  // Does it name a variable of an inner loop or a let?
  bool names_bound(const Expr& e) const { return names(e, bound_); }
  bool names_let(const Expr& e) const { return names(e, lets_); }
  bool reads_written(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = x.as<Load>();
      found |= l && writes(l->buffer);
    });
    return found;
  }
  std::vector<Access> accesses;
  std::vector<Buffer> privates;
  std::vector<Expr> extents;  // of inner loops

 private:
  using Names = std::unordered_set<const ExprNode*>;
  static bool names(const Expr& e, const Names& vars) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) { found |= vars.count(x.get()) > 0; });
    return found;
  }
  void visit(const Stmt& s) {
    if (const auto* q = s.as<Seq>()) {
      for (const Stmt& x : q->stmts) visit(x);
    } else if (const auto* st = s.as<Store>()) {
      plain_ &= !st->mask;
      for (const Expr& i : st->indices) visit(i);
      visit(st->value);
      written_.insert(st->buffer.get());
      accesses.push_back({st->buffer, st->indices, st});
    } else if (const auto* l = s.as<Let>()) {
      visit(l->value);
      bound_.insert(l->var.get());
      lets_.insert(l->var.get());
      visit(l->body);
    } else if (const auto* f = s.as<For>()) {
      plain_ &= f->loop_kind == LoopKind::kSerial;
      visit(f->extent);
      extents.push_back(f->extent);
      bound_.insert(f->var.get());
      visit(f->body);
    } else if (const auto* a = s.as<Allocate>()) {
      allocate(a->buffer);
      visit(a->body);
    } else {
      plain_ = false;  // control flow within an iteration
    }
  }
  void visit(const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) {
        plain_ &= !l->mask;
        accesses.push_back({l->buffer, l->indices});
      }
    });
  }
  void allocate(const Buffer& b) {
    int64_t bytes = byte_size(b->dtype);
    for (const Expr& n : b->shape) bytes *= as_int(n).value_or(kMostPrivateBytes + 1);
    plain_ &= b->scope == Scope::kLocal && b->layout.empty() && bytes <= kMostPrivateBytes;
    private_.insert(b.get());
    privates.push_back(b);
  }
  bool plain_ = true;
  std::unordered_set<const BufferNode*> written_, private_;
  Names bound_, lets_;
};

class PlanLanes {
 public:
  explicit PlanLanes(const For& loop) : loop_(loop), body_(loop.body) {}
  std::optional<LanePlan> run() {
    bool legal = body_.plain() && !body_.reads_written(loop_.extent);
    for (const Expr& e : body_.extents) legal = legal && is_invariant(e) && !body_.reads_written(e);
    for (const Access& a : body_.accesses) legal = legal && check(a);
    plan_.privates = body_.privates;
    plan_.apart = body_.has_loops() || !body_.privates.empty();
    // Values that a let has for one iteration would need lanes of their own then.
    if (!legal || (plan_.apart && body_.has_lets())) return std::nullopt;
    return plan_;
  }

 private:
  // Has it one value for all iterations, as far as variables go?
  bool is_invariant(const Expr& e) const { return !uses_var(e, loop_.var) && !body_.names_let(e); }
  bool are_invariant(const std::vector<Expr>& indices, size_t n) const {
    return std::all_of(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(n),
                       [&](const Expr& e) { return is_invariant(e); });
  }
  bool stays(const Access& a) const { return are_invariant(a.indices, a.indices.size()); }
  // Does the next iteration touch the next element in memory?
  bool moves_by_one(const Access& a) const {
    if (a.indices.empty() || !a.buffer->layout.empty()) return false;
    const Expr& last = a.indices.back();
    const auto step = to_linear(last).coefficient_of(loop_.var);
    return step && step->is_constant() && step->constant == 1 && !body_.names_let(last) &&
           are_invariant(a.indices, a.indices.size() - 1);
  }
  bool check(const Access& a) {
    if (body_.is_private(a.buffer)) return stays(a);
    const bool moves = !stays(a);
    plan_.moves_locals |= moves && a.buffer->scope == Scope::kLocal;
    if (moves || a.store)
      plan_.element_bytes = std::max(plan_.element_bytes, byte_size(a.buffer->dtype));
    if (!a.store) return check_load(a);
    if (moves_by_one(a)) return is_apart(a);
    if (!is_fold(a)) return false;
    plan_.folds.push_back(a.store);
    return true;
  }
  // What loads find is decided with the stores. Gathers pay in innermost loops, whose only vectors
  // they are.
  bool check_load(const Access& a) const {
    return !body_.has_loops() || stays(a) || moves_by_one(a);
  }
  // Does everything that touches the buffer have the last index v + c with one c?
  bool is_apart(const Access& a) const {
    const Expr& last = a.indices.back();
    if (body_.names_bound(last) || body_.reads_written(last)) return false;
    return std::all_of(body_.accesses.begin(), body_.accesses.end(), [&](const Access& b) {
      return b.buffer != a.buffer || can_prove_equal(b.indices.back(), last);
    });
  }
  // c[p] = op(c[p], term) where nothing else touches the buffer.
  bool is_fold(const Access& a) const {
    if (body_.has_loops()) return false;
    for (const Expr& i : a.indices)
      if (!is_invariant(i) || body_.reads_written(i)) return false;
    const auto reduction = find_lane_reduction(*a.store);
    if (!reduction || !is_exact(reduction->op, a.buffer->dtype)) return false;
    // The operation reads it and writes it.
    return std::count_if(body_.accesses.begin(), body_.accesses.end(),
                         [&](const Access& b) { return b.buffer == a.buffer; }) == 2;
  }
  // Is the result the same however operands are grouped? Not that of floats: sums round, and which
  // of two zeros or NaNs an extremum is depends on their order.
  static bool is_exact(BinaryOp op, DType t) {
    switch (op) {
      case BinaryOp::kMin:
      case BinaryOp::kMax:
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
      case BinaryOp::kAdd: return !is_float(t);
      default: return false;
    }
  }

  const For& loop_;
  const Body body_;
  LanePlan plan_;
};

}  // namespace

std::optional<LanePlan> plan_lanes(const For& loop) {
  return loop.loop_kind == LoopKind::kSerial ? PlanLanes(loop).run() : std::nullopt;
}

}  // namespace tilewright::passes
