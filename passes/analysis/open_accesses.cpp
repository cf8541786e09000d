// Bounds checking at compile time, as of array accesses in languages that check them: what is proven here costs the
// run nothing. Loops give ranges, selects and conditions give facts, and integers that are read from buffers have the
// range that was checked or stored (integer_elements.h).
#include "passes/analysis/open_accesses.h"

#include <utility>

#include "ir/loops/facts.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/analysis/integer_elements.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// One walk over a kernel, with the facts that hold at each place. Shared expressions are looked at once for each set
// of conditions.
class Accesses : public Visitor {
 public:
  Accesses(const Kernel& kernel, const std::vector<CheckedElements>& checked,
           const std::vector<Requirement>& known)
      : elements_(kernel, checked) {
    for (const Buffer& b : kernel.params) params_.insert(b.get());
    for (const Requirement& r : known) {
      if (r.relation == Relation::kBroadcast)
        facts_.assume_broadcast(r.a, r.b);
      else
        facts_.assume_nonnegative(r.b - r.a);
      if (r.relation == Relation::kEqual) facts_.assume_nonnegative(r.a - r.b);
    }
    given_ = facts_;
  }
  using Visitor::visit;

  std::vector<OpenAccess> run(const Stmt& body) {
    visit(body);
    return std::move(open_);
  }

  void visit(const Expr& e) override {
    // What was looked at under fewer conditions need not be again under more.
    for (const auto& seen : seen_)
      if (seen.count(e.get())) return;
    seen_.back().insert(e.get());
    if (const auto* s = e.as<Select>()) {
      visit(s->condition);
      under(s->condition, true, [&] { visit(s->a); });
      under(s->condition, false, [&] { visit(s->b); });
      return;
    }
    if (const auto* l = e.as<Load>()) access(l, l->buffer, l->indices);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    seen_.emplace_back();
    if (const auto* choice = s.as<If>()) {
      visit(choice->condition);
      const Expr lasting = elements_.lasting(choice->condition, s);
      under(lasting, true, [&] { visit(choice->then); });
      if (choice->otherwise) under(lasting, false, [&] { visit(choice->otherwise); });
    } else if (const auto* w = s.as<While>()) {
      visit(w->condition);
      under(elements_.lasting(w->condition, s), true, [&] { visit(w->body); });
    } else if (const auto* b = s.as<Block>()) {
      if (b->init) visit_init(*b);
      for (const BlockAxis& a : b->axes) enter_loop(a.var, a.extent);
      for (const Expr& e : b->bindings) visit(e);
      const auto body = [&] { visit(b->body); };
      b->predicate ? under(elements_.lasting(b->predicate, s), true, body) : body();
      loops_.resize(loops_.size() - b->axes.size());
    } else {
      if (const auto* f = s.as<For>()) enter_loop(f->var, f->extent);
      if (const auto* st = s.as<Store>()) access(st, st->buffer, st->indices);
      Visitor::visit(s);
      if (s.as<For>()) loops_.pop_back();
    }
    seen_.pop_back();
  }

 private:
  void enter_loop(const Var& v, const Expr& extent) {
    facts_.enter_loop(v, elements_.named(extent, facts_));
    loops_.push_back(extent);
  }
  // An init runs where no loop of a reduction does.
  void visit_init(const Block& b) {
    const Facts facts = std::exchange(facts_, given_);
    const std::vector<Expr> loops = std::exchange(loops_, {});
    const auto seen = std::exchange(seen_, std::vector<std::unordered_set<const ExprNode*>>(1));
    for (const BlockAxis& a : b.axes)
      if (a.kind != AxisKind::kReduce) enter_loop(a.var, a.extent);
    b.predicate ? under(nullptr, true, [&] { visit(b.init); }) : visit(b.init);
    facts_ = facts;
    loops_ = loops;
    seen_ = seen;
  }
  // A null condition says nothing.
  template <typename Inside>
  void under(const Expr& condition, bool holds, Inside inside) {
    const Facts::Mark mark = facts_.mark();
    seen_.emplace_back();
    if (condition) facts_.assume(elements_.named(condition, facts_), holds);
    ++conditions_;
    inside();
    --conditions_;
    seen_.pop_back();
    facts_.forget(mark);
  }

  // Temporaries are the verifier's, which knows their constant extents; parameters are checked here.
  void access(const void* node, const Buffer& buffer, const std::vector<Expr>& indices) {
    if (!params_.count(buffer.get())) return;
    for (size_t d = 0; d < indices.size() && d < buffer->shape.size(); ++d)
      if (indices[d].lanes() == 1) check(node, buffer, static_cast<int>(d), indices[d]);
  }
  // Adds the access unless both ends of the index are proven. Where no extreme can be given over the kernel's
  // scalars, that end stays null.
  void check(const void* node, const Buffer& buffer, int dim, const Expr& index) {
    const Expr& extent = buffer->shape[static_cast<size_t>(dim)];
    const Facts::Mark mark = facts_.mark();
    const Expr at = elements_.named(index, facts_);
    elements_.assume_stored_within(at, extent, facts_);
    const bool low = facts_.proves_nonnegative(at), high = facts_.proves_less(at, extent);
    facts_.forget(mark);
    if (low && high) return;
    OpenAccess a{node,    buffer,           dim,     index,           extent,
                 Expr(0), extent - Expr(1), Expr(1), conditions_ == 0};
    if (!low) a.low = uniform(lower_bound(at, facts_.ranges()));
    if (!high) a.high = uniform(upper_bound(at, facts_.ranges()));
    for (const Expr& e : loops_) {
      if (is_zero(e)) return;
      if (as_int(e) || (a.high && can_prove_equal(e, a.high + Expr(1)))) continue;
      if (uniform(e))
        a.runs = a.runs * min(e, Expr(1));
      else
        a.certain = false;
    }
    open_.push_back(std::move(a));
  }
  // The expression if it is the same in the whole kernel, without elements of buffers and variables bound inside.
  Expr uniform(const Expr& e) const {
    bool uniform = static_cast<bool>(e);
    if (e)
      for_each_expr(e, [&](const Expr& x) {
        const bool bound =
            x.kind() == NodeKind::kVar && (facts_.ranges().find(x) || elements_.is_name(x));
        uniform &= x.kind() != NodeKind::kLoad && !bound;
      });
    return uniform ? e : Expr();
  }

  IntegerElements elements_;
  std::unordered_set<const BufferNode*> params_;
  Facts facts_, given_;  // the latter in the whole kernel
  std::vector<Expr> loops_;
  int conditions_ = 0;  // around
  std::vector<std::unordered_set<const ExprNode*>> seen_{1};
  std::vector<OpenAccess> open_;
};

}  // namespace

std::vector<OpenAccess> open_accesses(const Kernel& kernel,
                                      const std::vector<CheckedElements>& checked,
                                      const std::vector<Requirement>& known) {
  if (!kernel.body) return {};
  return Accesses(kernel, checked, known).run(kernel.body);
}

}  // namespace tilewright::passes
