// Loads that surely lie inside their buffer need no guard: they may run where a Select does not
// want their value. A mask of `true` says so.
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
      // An expression that stands on both sides of a guard is rewritten for each of them.
      if (guards_++ == 0) forget();
      Expr a = rewrite(choice->a), b = rewrite(choice->b);
      if (--guards_ == 0) forget();
      return select(rewrite(choice->condition), a, b);
    }
    Expr x = Rewriter::rewrite(e);
    const auto* l = x.as<Load>();
    if (!l || l->buffer->scope != Scope::kParam || l->mask || guards_ == 0 ||
        !lies_inside(*l->buffer, l->indices[0], ranges_))
      return x;
    return load(l->buffer, l->indices, bool_imm(true), l->ahead);
  }

 private:
  Ranges ranges_;
  int guards_ = 0;
};

}  // namespace

// By intervals of the first and the last lane; the buffer's extents must be constant.
bool lies_inside(const BufferNode& b, const Expr& index, const Ranges& ranges) {
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
  const Interval low = interval(first, ranges), high = interval(last, ranges);
  return size && low.low && *low.low >= 0 && high.high && *high.high < *size;
}

Stmt unguard_loads(const Stmt& s) { return UnguardLoads().rewrite(s); }

}  // namespace tilewright::passes
