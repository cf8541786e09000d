// Loads that surely lie inside their buffer need no guard: they may run where their value is not
// wanted.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class UnguardLoads : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    if (const auto* f = s.as<For>()) ranges_.set(f->var, f->extent);
    return Rewriter::rewrite(s);
  }
  Expr rewrite(const Expr& e) override {
    if (const auto* choice = e.as<Select>()) {
      ++guards_;
      Expr a = rewrite(choice->a), b = rewrite(choice->b);
      --guards_;
      return select(rewrite(choice->condition), a, b);
    }
    Expr x = Rewriter::rewrite(e);
    const auto* l = x.as<Load>();
    // Inside a guard a mask of `true` says so; a mask of its own goes.
    if (!l || l->buffer->scope != Scope::kParam || (!l->mask && guards_ == 0) ||
        !inside(*l->buffer, l->indices[0]))
      return x;
    return load(l->buffer, l->indices, guards_ ? bool_imm(true) : Expr());
  }

 private:
  bool inside(const BufferNode& b, const Expr& index) const {
    Expr first = index, last = index;
    if (const auto* r = index.as<Ramp>()) {
      const auto stride = as_int(r->stride);
      if (!stride || *stride < 0) return false;
      first = r->base;
      last = r->base + Expr(*stride * (r->type.lanes - 1));
    } else if (index.lanes() != 1) {
      return false;
    }
    const auto size = as_int(simplify(storage_elements(b)));
    const Interval low = interval(first, ranges_), high = interval(last, ranges_);
    return size && low.low && *low.low >= 0 && high.high && *high.high < *size;
  }

  Ranges ranges_;
  int guards_ = 0;
};

}  // namespace

Stmt unguard_loads(const Stmt& s) { return UnguardLoads().rewrite(s); }

}  // namespace tilewright::passes
