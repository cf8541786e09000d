// Full unrolling of the loops that the schedule marks: register tiles and small windows. Copies get
// names of their own, and selects on the loop's variable are decided, which is how Winograd's
// transforms lose their case distinctions.
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Values chosen by a condition that is known now.
class ChooseKnown : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* s = e.as<Select>();
    if (!s) return Rewriter::rewrite(e);
    const auto* same = s->condition.as<Broadcast>();
    const auto known = as_int(simplify(same ? same->value : s->condition));
    return known ? rewrite(*known ? s->a : s->b) : Rewriter::rewrite(e);
  }
};

bool chooses_by(const Stmt& s, const Var& v) {
  bool found = false;
  for_each_expr(s, [&](const Expr& e) {
    if (const auto* choice = e.as<Select>()) found |= uses_var(choice->condition, v);
  });
  return found;
}

class UnrollLoops : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* f = s.as<For>();
    if (!f || f->loop_kind != LoopKind::kUnrolled) return Rewriter::rewrite(s);
    auto n = as_int(f->extent);
    Stmt body = rewrite(f->body);
    if (!n) return for_loop(f->var, f->extent, body);  // a symbolic tail: runs as a loop
    std::vector<Stmt> copies;
    const bool chooses = chooses_by(body, f->var);
    for (int64_t i = 0; i < *n; ++i) {
      Stmt copy = substitute(body, {{f->var.get(), Expr(i)}});
      if (chooses) copy = ChooseKnown().rewrite(copy);
      copies.push_back(i == 0 ? copy : clone_with_fresh_names(copy, "_" + std::to_string(i)));
    }
    return seq(std::move(copies));
  }
};

}  // namespace

Stmt unroll_loops(const Stmt& s) { return UnrollLoops().rewrite(s); }

}  // namespace tilewright::passes
